// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

func FuzzServed(f *testing.F) {
	for _, body := range []string{
		rssOpen + `<link>/</link><item><guid isPermaLink="true">/1</guid><description>&lt;a href="../1"&gt;<![CDATA[<img srcset="a 1x, b">]]></description></item>` + rssClose,
		`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="/a/"><link rel="self hub" href="f"/><link rel="hub" href="h"/><entry><content type="html">&lt;a href=&quot;//x/&quot;&gt;</content></entry></feed>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"><entry><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><a href="?x">x</a></div></content></entry></feed>`,
		jsonOpen + `"feed_url": "f", "hubs": [{"url": "h"}], "items": [{"id": 1, "url": "\/1", "content_html": "<a href=\"1\">"}], "hubs": []}`,
		"<!DOCTYPE rss [<!ENTITY a 'b'>]><rss><channel><itunes:new-feed-url xmlns:itunes='http://www.itunes.com/dtds/podcast-1.0.dtd'>x</itunes:new-feed-url>",
		"junk<rss><channel><item><link>a<b></item><link>&</link>",
	} {
		f.Add([]byte(body), "https://example.org/blog/feed.xml", "text/xml", true)
		f.Add([]byte(body), "https://example.org/blog/feed.xml", "text/xml", false)
	}
	now := time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, body []byte, base, contentType string, secret bool) {
		original := bytes.Clone(body)
		once, report := Served(body, contentType, base, secret)
		if !bytes.Equal(body, original) {
			t.Fatal("the body was written to")
		}
		if len(once) > 2*len(body)+spareGrowth {
			t.Fatalf("%d bytes have become %d", len(body), len(once))
		}
		if report.Problem != "" && len(once) > len(body) {
			t.Fatalf("changed in spite of a problem: %q", once)
		}
		if twice, again := Served(once, contentType, base, secret); again.Problem == "" && !bytes.Equal(twice, once) {
			t.Fatalf("made twice: %q becomes %q", once, twice)
		}

		before, err := document.Read(body, contentType, now)
		if err != nil {
			return
		}
		if report.Problem == problemMarkup {
			t.Fatalf("a feed is not read to its end: %q", body)
		}
		if before.Lenient {
			return
		}
		after, err := document.Read(once, contentType, now)
		if err != nil {
			t.Fatalf("%q is read, and %q is not: %v", body, once, err)
		}
		if h := after.Hints; report.Problem != problemEncoding && (len(h.Hubs) > 0 || h.NewFeedURL != "" || h.Self != "") {
			t.Fatalf("hints %+v are left in %q", h, once)
		}
		if !reflect.DeepEqual(skeleton(before), skeleton(after)) {
			t.Fatalf("%+v of %q has become %+v of %q", before, body, after, once)
		}
	})
}

// skeleton is what no rewriting may change.
func skeleton(d *policy.Document) policy.Document {
	h := d.Hints
	h.Hubs, h.Self, h.NewFeedURL = nil, "", ""
	r := d.Rhythm
	r.IDs = 0 // a link or a permalink may be what identifies an entry
	return policy.Document{Format: d.Format, Version: d.Version, Hints: h, Rhythm: r, Lenient: d.Lenient}
}
