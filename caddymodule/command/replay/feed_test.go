// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document"
)

var formats = map[string]string{
	"RSS 2.0":            `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><item><title>A</title><guid>a</guid></item></channel></rss>`,
	"RSS 2.0 is empty":   `<rss version="2.0"><channel><title>T</title></channel></rss>`,
	"RSS 1.0":            `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="x"><title>T</title><items><rdf:Seq/></items></channel><item rdf:about="a"><title>A</title><link>a</link></item></rdf:RDF>`,
	"Atom":               `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>t</id><updated>2024-01-01T00:00:00Z</updated><entry><id>a</id><title>A</title><updated>2024-01-01T00:00:00Z</updated></entry></feed>`,
	"Atom with a prefix": `<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title>T</a:title><a:id>t</a:id><a:entry><a:id>a</a:id><a:title>A</a:title></a:entry></a:feed>`,
	"Atom is empty":      `<feed xmlns="http://www.w3.org/2005/Atom"><title>T</title><id>t</id></feed>`,
	"JSON":               `{"version":"https://jsonfeed.org/version/1.1","title":"T","items": [{"id":"a","content_text":"A"}]}`,
	"JSON is empty":      `{"version":"https://jsonfeed.org/version/1.1","title":"T","items":[ ]}`,
}

func TestEditionsDifferInMeaning(t *testing.T) {
	begin := time.Date(2024, time.March, 24, 10, 0, 0, 0, time.UTC)
	for name, body := range formats {
		t.Run(name, func(t *testing.T) {
			f, err := newFeed(Options{Feed: []byte(body), ChangeEvery: time.Hour}, begin)
			if err != nil {
				t.Fatal(err)
			}
			if !f.changes() {
				t.Error("it cannot be changed")
			}
			seen := map[policy.Fingerprint]bool{}
			tags := map[string]bool{}
			for i, at := range []time.Duration{0, 59 * time.Minute, time.Hour, 2*time.Hour + 1, 30 * time.Hour} {
				e, err := f.at(begin.Add(at))
				if err != nil {
					t.Fatal(err)
				}
				d, err := document.Read(e.body, "", begin)
				if err != nil {
					t.Fatalf("%v: %v in %s", at, err, e.body)
				}
				if d.Format != f.document.Format || e.number > 0 && d.Rhythm.Entries != f.document.Rhythm.Entries+1 {
					t.Errorf("%v: %s with %d entries", at, d.Format, d.Rhythm.Entries)
				}
				seen[d.Fingerprint], tags[e.header.Get("Etag")] = true, true
				if want := []int{1, 1, 2, 3, 4}[i]; len(seen) != want || len(tags) != want {
					t.Errorf("%v: %d meanings and %d tags so far, want %d", at, len(seen), len(tags), want)
				}
			}
		})
	}
}
