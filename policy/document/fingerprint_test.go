// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"

	"github.com/feedpollard/pollard/policy"
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
		{"skipHours", "<ttl>", "<skipHours><hour>3</hour></skipHours><ttl>"},
		{"the syndication module", "<ttl>", "<sy:updatePeriod>daily</sy:updatePeriod><ttl>"},
		{"the channel's dc:date", "<ttl>", "<dc:date>2024-01-29</dc:date><ttl>"},
		{"a count of comments", "<slash:comments>3", "<slash:comments>4"},
		{"a count of views", `views="10"`, `views="11"`},
		{"white space between elements", "</title><link>", "</title>\n\n  <link>"},
		{"a comment", "<title>One", "<!-- x --><title>O<!-- x -->ne"},
		{"CDATA", "<![CDATA[<b>of</b>]]>", "&lt;b&gt;of&lt;/b&gt;"},
		{"the order of attributes", `length="1" type="audio/mpeg"`, `type="audio/mpeg" length="1"`},
		{"the order of entries", item, ""},
		{"a style sheet", "<rss", `<?xml-stylesheet href="x.xsl"?><rss`},
		{"a comment around it", "</rss>", "</rss><!-- 0.1 s -->"},
		{"a script around it", "</rss>", "</rss><script>x</script>"},
		{"a warning around it", "<rss", "Warning: x<rss"},
		{"a prefix", "<dc:creator>A</dc:creator>", `<x:creator xmlns:x="http://purl.org/dc/elements/1.1/">A</x:creator>`},
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
		{"a move", "<ttl>", "<itunes:new-feed-url>https://example.net/</itunes:new-feed-url><ttl>"},
		{"an address that is the site's too", "<ttl>", `<atom:link rel="self alternate" href="https://example.org/feed"/><ttl>`},
		{"an entry's own address", "<guid>g2", `<atom:link rel="self" href="https://example.org/feed"/><guid>g2`},
		{"completion", "<ttl>", "<itunes:complete>yes</itunes:complete><ttl>"},
		{"a cloud", "<ttl>", `<cloud domain="example.org"/><ttl>`},
		{"a live item", "<ttl>", `<podcast:liveItem status="live"/><ttl>`},
		{"the base of addresses", "<item><title>One", `<item xml:base="https://example.net/"><title>One`},
		{"the language", "<title>One", `<title xml:lang="en">One`},
		{"an element that nobody knows", "</item>", "<x:y xmlns:x='urn:x'>x</x:y></item>"},
		{"an attribute that nobody knows", "<item><title>One", "<item new='1'><title>One"},
		{"a namespace", "<dc:creator>A</dc:creator>", `<dc:creator xmlns:dc="urn:x">A</dc:creator>`},
		{"an entry's lastBuildDate", "</item>", "<lastBuildDate>x</lastBuildDate></item>"},
		{"white space in front of a text", "<title>One", "<title> One"},
		{"a title", "One", "one"},
		{"an id", ">g1<", ">g3<"},
		{"whether the id is a link", `isPermaLink="false"`, `isPermaLink="true"`},
		{"a date", "</guid><pubDate>Mon, 29", "</guid><pubDate>Tue, 30"},
		{"a text", "one</description>", "ones</description>"},
		{"white space within a text", "Text <!", "Text<!"},
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
		"<title>T</title>":     "<title>T</title>\n <generator>G</generator>",
		`<entry>`:              `<!-- x --><entry xmlns:t="urn:t">`,
	} {
		if read(t, strings.Replace(atomSample, old, replacement, 1)).Fingerprint != want {
			t.Errorf("%s: a new fingerprint", replacement)
		}
	}
	for old, replacement := range map[string]string{
		"2024-01-29T00:00:00Z": "2024-01-30T00:00:00Z", // the entry's updated
		"<p>x</p>":             "<b>x</b>",
		"<p>x</p></div>":       "<p>x</p> </div>",
		"<entry>":              `<entry><link rel="enclosure" href="x"/>`,
	} {
		if read(t, strings.Replace(atomSample, old, replacement, 1)).Fingerprint == want {
			t.Errorf("%s: the same fingerprint", replacement)
		}
	}
}

// A greater count of comments is not a change; a new link is.
func TestFingerprintOfThreads(t *testing.T) {
	links := []string{"", `<link rel="replies" href="x" xmlns:t="http://purl.org/syndication/thread/1.0" t:count="3"/>`}
	links = append(links, strings.Replace(links[1], `"3"`, `"4" t:updated="2024-01-30T00:00:00Z"`, 1))
	var of []policy.Fingerprint
	for _, link := range links {
		of = append(of, read(t, strings.Replace(atomSample, "<entry>", "<entry>"+link, 1)).Fingerprint)
	}
	if of[0] == of[1] || of[1] != of[2] {
		t.Errorf("%x", of)
	}
}

// Documents that differ in structure only, or whose parts could be mistaken for one
// another when they are put in a row.
func TestFingerprintsDiffer(t *testing.T) {
	entry := func(s string) string { return "<rss><channel>" + s + "</channel></rss>" }
	json := func(s string) string { return `{"version":"https://jsonfeed.org/version/1",` + s + `}` }
	seen := map[policy.Fingerprint]string{}
	for _, body := range []string{
		entry(""), entry("<item/>"), entry("<item/><item/>"), entry("<item><item/></item>"),
		entry("<item>ab</item>"), entry("<item>a<b/></item>"), entry("<item><a/>b</item>"), entry("<item><a>b</a></item>"),
		entry("<item><a/><b/></item>"), entry("<item><b/><a/></item>"), entry("<item><a><b/></a></item>"), entry("<item><ab/></item>"),
		entry(`<item a="b"/>`), entry(`<item a="" b=""/>`), entry(`<item ab=""/>`), entry(`<item><a/></item><item/>`), entry(`<item/><a/>`),
		entry(`<item xmlns="urn:x"><a/></item>`), "<rss><item/></rss>", "<rss><channel/><item/></rss>", "<rss><item/><channel/></rss>", entry("<item/></channel><channel>"),
		`<rss version="2.0"><channel/></rss>`, `<RDF xmlns="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><item xmlns="http://purl.org/rss/1.0/"/></RDF>`,
		`<feed xmlns="http://www.w3.org/2005/Atom"/>`, `<feed xmlns="http://www.w3.org/2005/Atom"><entry/></feed>`,
		json(`"items":[]`), json(`"items":[{}]`), json(`"items":[{},{}]`), json(`"items":[{"a":"b"}]`), json(`"items":[{"ab":""}]`), json(`"items":[{"a":["b"]}]`),
		json(`"items":[{"a":"[\"b\"]"}]`), json(`"items":[{"a":1}]`), json(`"items":[{"a":"1"}]`), json(`"items":[{"a":null}]`), json(`"items":[null]`),
		json(`"items":[{"a":"x"},{"b":"y"}]`), json(`"items":[{"a":"x","b":"y"},{}]`), json(`"items":[{"a":"x"}],"b":"y"`), json(`"items":null`), json(`"items":{}`),
	} {
		f := read(t, body).Fingerprint
		if other, known := seen[f]; known {
			t.Errorf("%s and %s have the same fingerprint", other, body)
		}
		seen[f] = body
	}
}

func TestFingerprintOfJSON(t *testing.T) {
	want := read(t, jsonSample).Fingerprint
	for old, replacement := range map[string]string{
		`"id": "1"`:                      `"id" : "\u0031"`,
		`{"id": 2}`:                      ` { "id":2 } `,
		`"id": "1", "content_text": "x"`: `"content_text": "x", "id": "1"`,
		`"title": "T", `:                 ``, // put elsewhere below
		`[{"type": "WebSub", "url"`:      `[ {"type":"WebSub", "url"`,
	} {
		changed := strings.Replace(jsonSample, old, replacement, 1)
		if replacement == "" {
			changed = strings.TrimSuffix(changed, "}") + `, "title": "T"}`
		}
		if changed == jsonSample || read(t, changed).Fingerprint != want {
			t.Errorf("%s: a new fingerprint", changed)
		}
	}
	for old, replacement := range map[string]string{
		`"id": "1"`:           `"id": "3"`,
		`"content_text": "x"`: `"content_html": "x"`,
		`"title": "T", `:      `"title": "T", "icon": "i", `,
		`"version"`:           `"expired": true, "version"`,
		`"items": [`:          `"next_url": "x", "items": [`,
		`{"id": 2}`:           `{"id": 2, "attachments": [{"url": "https://example.org/2.mp3"}]}`,
		`{"id": "1"`:          `{"_new": 1, "id": "1"`,
	} {
		changed := strings.Replace(jsonSample, old, replacement, 1)
		if changed == jsonSample || read(t, changed).Fingerprint == want {
			t.Errorf("%s: the same fingerprint", changed)
		}
	}
}

// The feed's own address and push services have no part in the fingerprint.
func TestFingerprintWithoutAddresses(t *testing.T) {
	for before, after := range map[string]string{
		"<rss><channel><ttl/></channel></rss>": `<rss xmlns:a="http://www.w3.org/2005/Atom"><channel><a:link rel="self" href="x?1"/><a:link rel="http://www.iana.org/assignments/relation/Hub self" href="y"><x>z</x></a:link><ttl/></channel></rss>`,
		atomSample:                             strings.Replace(atomSample, "../atom.xml", "../atom.xml?t=1", 1),
		jsonSample:                             strings.Replace(strings.Replace(jsonSample, "hub.example.org", "hub.example.net", 1), `"feed_url": "https`, `"feed_url": "http`, 1),
	} {
		a, b := read(t, before), read(t, after)
		if before == after || a.Fingerprint != b.Fingerprint {
			t.Errorf("%s and %s: %x and %x", before, after, a.Fingerprint, b.Fingerprint)
		}
	}
}

// What follows the place where markup cannot be read may have entries that some readers see.
func TestFingerprintOfUnreadable(t *testing.T) {
	for _, fault := range []string{"</p>", "a < b", "<<<<<<< HEAD", "<!-- a -- b -->"} {
		broken := strings.Replace(meant, "<item>", fault+"<item>", 1)
		want := read(t, broken).Fingerprint
		if got := read(t, strings.Replace(broken, "Two", "Three", 1)).Fingerprint; got == want {
			t.Errorf("%s: a change behind it is not seen", fault)
		}
		if got := read(t, strings.Replace(broken, "G 1.0", "G 1.1", 1)).Fingerprint; got != want {
			t.Errorf("%s: another generator before it is a change", fault)
		}
	}
}
