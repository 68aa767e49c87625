// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"strings"
	"testing"
)

func TestSplice(t *testing.T) {
	const gateway = `http://gw.example/https://example.org/f?a=1&b="2"`
	const xml, json = `http://gw.example/https://example.org/f?a=1&amp;b=&quot;2&quot;`, `http://gw.example/https://example.org/f?a=1&b=\"2\"`
	tests := []struct{ name, before, want string }{
		{"rss", rssOpen + `<atom:link href="https://example.org/f" rel="self"/><atom:link rel="hub" href="https://hub.example/"/>` + rssClose,
			rssOpen + `<atom:link href="` + xml + `" rel="self"/>` + rssClose},
		{"atom", atomOpen + `<link rel='self' href='f'/> <link rel="http://www.iana.org/assignments/relation/hub" href="h"></link>
<link href="/"/><entry><link rel="self" href="/1"/><link rel="hub" href="h"/></entry>` + atomClose,
			atomOpen + `<link rel='self' href='` + xml + `'/> 
<link href="/"/><entry><link rel="self" href="/1"/><link rel="hub" href="h"/></entry>` + atomClose},
		{"several relations", atomOpen + `<link rel="Hub self hub" href="f"/><link rel="hub alternate" href="f"/>` + atomClose,
			atomOpen + `<link rel=" self " href="` + xml + `"/><link rel=" alternate" href="f"/>` + atomClose},
		{"self without an address", atomOpen + `<link rel="self"/><link rel="self" href=""/>` + atomClose,
			atomOpen + `<link rel="self"/><link rel="self" href="` + xml + `"/>` + atomClose},
		{"a new address", rssOpen + `<itunes:new-feed-url> <![CDATA[https://example.net/f]]></itunes:new-feed-url><itunes:new-feed-url/><item><itunes:new-feed-url>x</itunes:new-feed-url></item>` + rssClose,
			rssOpen + `<itunes:new-feed-url>` + xml + `</itunes:new-feed-url><itunes:new-feed-url/><item><itunes:new-feed-url>x</itunes:new-feed-url></item>` + rssClose},
		{"links of another namespace", `<rss><channel><link rel="self" href="x"/><x:link xmlns:x="urn:x" rel="hub"/></channel></rss>`, ""},
		{"a hub that does not end", rssOpen + `<atom:link rel="hub" href="h"><item/>` + rssClose, rssOpen + `<item/>` + rssClose},
		{"a new address that does not end", rssOpen + `<itunes:new-feed-url>https://example.net/<item/>` + rssClose, ""},
		{"a new address that ends with the channel", rssOpen + `<itunes:new-feed-url>https://example.net/` + rssClose, ""},
		{"a hub with elements in it", atomOpen + `<link rel="hub" href="h"> <x>y</x> </link >z` + atomClose, atomOpen + `z` + atomClose},
		{"json", `{"feed_url": "https:\/\/example.org/f", "items": [{"feed_url": "x", "hubs": []}], "hubs": [{"url": "x"}], "title": "t"}`,
			`{"feed_url": "` + json + `", "items": [{"feed_url": "x", "hubs": []}], "title": "t"}`},
		{"hubs first", `{ "hubs": [], "title": "t"}`, `{ "title": "t"}`},
		{"hubs last", `{"title": "t" , "hubs": []}`, `{"title": "t"}`},
		{"nothing but hubs", `{"hubs": [], "hubs": []}`, `{}`},
		{"hubs twice at the end", `{"a": 1, "hubs": [], "b": 2, "hubs": [1], "hubs": [2] }`, `{"a": 1, "b": 2 }`},
		{"hubs before what is nested too deep", `{"hubs": [], "a": ` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `, "b": 1}`, ""},
		{"feed_url that is none", `{"feed_url": ["x"], "author": {"feed_url": "x"}}`, ""},
		{"UTF-16", "\xff\xfe<\x00f\x00", ""},
		{"nothing", " ", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := test.want
			if want == "" {
				want = test.before
			}
			got := Splice([]byte(test.before), Marks([]byte(test.before), ""), gateway)
			if string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			again := Splice(got, Marks(got, ""), gateway)
			if string(again) != string(got) {
				t.Errorf("made twice: %s", again)
			}
		})
	}
}

// A document cannot make itself large by naming itself often.
func TestSpliceIsBounded(t *testing.T) {
	body := []byte(atomOpen + strings.Repeat(`<link rel="self" href=""/>`, 1000) + atomClose)
	got := Splice(body, Marks(body, ""), strings.Repeat("x", 2000))
	if len(got) > len(body)+maxNamed*2000 {
		t.Errorf("%d bytes have become %d", len(body), len(got))
	}
}
