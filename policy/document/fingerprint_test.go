// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"
)

// meant is a feed in which each of the tests changes one thing.
const meant = rssOpen + `<lastBuildDate>Mon, 29 Jan 2024 13:51:53 GMT</lastBuildDate><pubDate>Mon, 29 Jan 2024 13:51:53 GMT</pubDate>
<generator>G 1.0</generator><ttl>60</ttl><image><url>https://example.org/i.png</url></image>
<item><title>One</title><link>https://example.org/1</link><guid isPermaLink="false">g1</guid><pubDate>Mon, 29 Jan 2024 13:51:53 GMT</pubDate>
<description>Text <![CDATA[<b>of</b>]]> one</description><content:encoded>Full</content:encoded><category>c</category><dc:creator>A</dc:creator>
<enclosure url="https://example.org/1.mp3" length="1" type="audio/mpeg"/><slash:comments>3</slash:comments>
<media:group><media:title>M</media:title><media:community><media:statistics views="10"/></media:community></media:group></item>
<item><title>Two</title><guid>g2</guid></item>
` + rssClose

func TestFingerprintIgnoresWhatIsVolatile(t *testing.T) {
	item := meant[strings.Index(meant, "<item><title>Two") : len(meant)-len(rssClose)]
	tests := []struct{ name, old, new string }{
		{"lastBuildDate", "<lastBuildDate>Mon, 29", "<lastBuildDate>Tue, 30"},
		{"the channel's pubDate", "</lastBuildDate><pubDate>Mon, 29", "</lastBuildDate><pubDate>Tue, 30"},
		{"generator", "G 1.0", "G 1.1"},
		{"ttl", "<ttl>60</ttl>", ""},
		{"a count of comments", "<slash:comments>3", "<slash:comments>4"},
		{"a count of views", `views="10"`, `views="11"`},
		{"white space between elements", "</title><link>", "</title>\n\n  <link>"},
		{"white space around a text", "<title>One</title>", "<title>\n One </title>"},
		{"a comment", "<title>One", "<!-- x --><title>O<!-- x -->ne"},
		{"CDATA", "<![CDATA[<b>of</b>]]>", "&lt;b&gt;of&lt;/b&gt;"},
		{"the order of attributes", `length="1" type="audio/mpeg"`, `type="audio/mpeg" length="1"`},
		{"the order of fields", "<category>c</category><dc:creator>A</dc:creator>", "<dc:creator>A</dc:creator><category>c</category>"},
		{"the order of entries", item, ""},
		{"a prefix", "<dc:creator>A</dc:creator>", `<x:creator xmlns:x="http://purl.org/dc/elements/1.1/">A</x:creator>`},
		{"the notation of a date", "</guid><pubDate>Mon, 29 Jan 2024 13:51:53 GMT", "</guid><pubDate>2024-01-29T14:51:53+01:00"},
		{"an unknown element", "</item>", "<wfw:commentRss xmlns:wfw='http://wellformedweb.org/CommentAPI/'>x</wfw:commentRss></item>"},
	}
	want := read(t, meant).Fingerprint
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			changed := strings.Replace(meant, test.old, test.new, 1)
			if test.name == "the order of entries" {
				changed = strings.Replace(changed, "<item>", item+"<item>", 1)
			}
			if changed == meant {
				t.Fatal("nothing was changed")
			}
			if read(t, changed).Fingerprint != want {
				t.Error("a new fingerprint")
			}
		})
	}
}

func TestFingerprintSeesChanges(t *testing.T) {
	tests := []struct{ name, old, new string }{
		{"the feed's title", "<title>T</title>", "<title>U</title>"},
		{"the feed's link", "<link>https://example.org/<", "<link>https://example.net/<"},
		{"the feed's image", "i.png", "j.png"},
		{"a move", "<ttl>", "<itunes:new-feed-url>https://example.net/</itunes:new-feed-url><ttl>"},
		{"a title", "One", "one"},
		{"a link", "example.org/1<", "example.org/2<"},
		{"an id", ">g1<", ">g3<"},
		{"whether the id is a link", `isPermaLink="false"`, `isPermaLink="true"`},
		{"a date", "</guid><pubDate>Mon, 29", "</guid><pubDate>Tue, 30"},
		{"a date without sense", "</guid><pubDate>Mon, 29 Jan 2024 13:51:53 GMT", "</guid><pubDate>soon"},
		{"a text", "one</description>", "ones</description>"},
		{"white space within a text", "Text <!", "Text<!"},
		{"the full text", "Full", "Fuller"},
		{"a category", "<category>c", "<category>d"},
		{"an author", "<dc:creator>A", "<dc:creator>B"},
		{"an enclosure", `length="1"`, `length="2"`},
		{"media", "<media:title>M", "<media:title>N"},
		{"an entry less", "<item><title>Two</title><guid>g2</guid></item>", ""},
		{"an entry more", rssClose, "<item/>" + rssClose},
		{"an entry twice", rssClose, "<item><title>Two</title><guid>g2</guid></item>" + rssClose},
		{"a field in the other entry", "<category>c</category>", ""},
		{"the border between fields", "<category>c</category>", "<category/><category>c</category>"},
	}
	want := read(t, meant).Fingerprint
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			changed := strings.Replace(meant, test.old, test.new, 1)
			if test.name == "a field in the other entry" {
				changed = strings.Replace(changed, "<guid>g2", "<category>c</category><guid>g2", 1)
			}
			if changed == meant {
				t.Fatal("nothing was changed")
			}
			if read(t, changed).Fingerprint == want {
				t.Error("the same fingerprint")
			}
		})
	}
}

func TestFingerprintOfAtom(t *testing.T) {
	want := read(t, atomSample).Fingerprint
	for old, replacement := range map[string]string{
		"2024-02-01T00:00:00Z": "2024-02-02T00:00:00Z", // the feed's own updated
		"../atom.xml":          "../atom.xml?t=1",
		"<p>x</p>":             "\n<p> x\n</p>\n",
		"<entry>":              `<entry><link rel="replies" href="x" xmlns:t="http://purl.org/syndication/thread/1.0" t:count="3"/>`,
	} {
		if read(t, strings.Replace(atomSample, old, replacement, 1)).Fingerprint != want {
			t.Errorf("%s: a new fingerprint", replacement)
		}
	}
	for old, replacement := range map[string]string{
		"2024-01-29T00:00:00Z": "2024-01-30T00:00:00Z", // the entry's updated
		"<p>x</p>":             "<b>x</b>",
		"<entry>":              `<entry><link rel="enclosure" href="x"/>`,
	} {
		if read(t, strings.Replace(atomSample, old, replacement, 1)).Fingerprint == want {
			t.Errorf("%s: the same fingerprint", replacement)
		}
	}
}

func TestFingerprintOfJSON(t *testing.T) {
	want := read(t, jsonSample).Fingerprint
	for old, replacement := range map[string]string{
		`"id": "1"`:            `"_views": 5, "id" : "\u0031"`,
		"2024-01-28T13:51:53Z": "2024-01-28T14:51:53+01:00",
		`"title": "T", `:       `"user_comment": "x", "title": "T", `,
		`{"id": 2}`:            `null, { "id": "2" }`,
	} {
		if read(t, strings.Replace(jsonSample, old, replacement, 1)).Fingerprint != want {
			t.Errorf("%s: a new fingerprint", replacement)
		}
	}
	for old, replacement := range map[string]string{
		`"id": "1"`:           `"id": "3"`,
		`"content_text": "x"`: `"content_html": "x"`,
		`{"id": 2}`:           `{"id": 2, "attachments": [{"url": "https://example.org/2.mp3"}]}`,
		`"title": "T", `:      `"title": "T", "icon": "i", `,
	} {
		if read(t, strings.Replace(jsonSample, old, replacement, 1)).Fingerprint == want {
			t.Errorf("%s: the same fingerprint", replacement)
		}
	}
}
