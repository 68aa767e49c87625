// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// now is the time in these tests: a week after the samples' last entry.
var now = time.Date(2024, time.February, 5, 12, 0, 0, 0, time.UTC)

const (
	rssOpen = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"
 xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:podcast="https://podcastindex.org/namespace/1.0"
 xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"
 xmlns:slash="http://purl.org/rss/1.0/modules/slash/" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>T</title><link>https://example.org/</link>`
	rssClose = `</channel></rss>`

	rssSample = `<?xml version="1.0" encoding="UTF-8"?>
` + rssOpen + `<ttl>60</ttl>
<item><title>Zwei</title><link>https://example.org/2</link><guid>2</guid><pubDate>Mon, 29 Jan 2024 13:51:53 GMT</pubDate></item>
<item><title>Eins &amp; mehr</title><guid>1</guid><pubDate>Sun, 28 Jan 2024 13:51:53 GMT</pubDate><description><![CDATA[<p>x</p>]]></description></item>
<item><title>Drei</title><guid>3</guid><pubDate>Wed, 31 Jan 2024 13:51:53 GMT</pubDate></item>
` + rssClose

	rdfSample = `<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel rdf:about="https://example.org/"><title>T</title></channel>
<item rdf:about="https://example.org/1"><title>One</title><dc:date>2024-01-28T13:51:53Z</dc:date></item>
</rdf:RDF>`

	atomSample = `<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://example.org/blog/"><id>tag:example.org,2024:f</id><title>T</title>
<link rel="hub" href="https://hub.example.org/"/><link rel="self" href="../atom.xml"/><updated>2024-02-01T00:00:00Z</updated>
<entry><id>tag:example.org,2024:1</id><title>One</title><published>2024-01-28T13:51:53Z</published><updated>2024-01-29T00:00:00Z</updated>
<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><p>x</p></div></content></entry></feed>`

	jsonSample = `{"version": "https://jsonfeed.org/version/1.1", "title": "T", "feed_url": "https://example.org/feed.json",
"hubs": [{"type": "WebSub", "url": "https://hub.example.org/"}, {"type": "rssCloud", "url": "https://cloud.example.org/"}],
"items": [{"id": "1", "content_text": "x", "date_published": "2024-01-28T13:51:53Z"}, {"id": 2}]}`
)

// read is Read for documents that must be feeds.
func read(t *testing.T, body string) *policy.Document {
	t.Helper()
	doc, err := Read([]byte(body), "", now)
	if err != nil {
		t.Fatalf("Read: %v", err)
	}
	return doc
}

func TestReadRecognisesFeeds(t *testing.T) {
	tests := []struct {
		name, body, format, version string
		entries                     int
		lenient                     bool
	}{
		{"rss 2.0", rssSample, "rss", "2.0", 3, false},
		{"rss without version", `<rss><channel/></rss>`, "rss", "", 0, false},
		{"rss in capitals", `<RSS version="0.91"><CHANNEL><ITEM/></CHANNEL></RSS>`, "rss", "0.91", 1, false},
		{"rss in a namespace of its own", `<rss version="2.0" xmlns="http://example.org/mine"><channel><item/></channel></rss>`, "rss", "2.0", 1, false},
		{"rss 1.0", rdfSample, "rss", "1.0", 1, false},
		{"rss 0.90", `<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://my.netscape.com/rdf/simple/0.9/"><channel/><item/></r:RDF>`, "rss", "0.90", 1, false},
		{"atom 1.0", atomSample, "atom", "1.0", 1, false},
		{"atom with a prefix", `<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:entry/><entry/></a:feed>`, "atom", "1.0", 1, false},
		{"atom 0.3", `<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry/></feed>`, "atom", "0.3", 1, false},
		{"atom without namespace", `<feed><entry/></feed>`, "atom", "", 1, false},
		{"json feed 1.1", jsonSample, "json", "1.1", 2, false},
		{"json feed 1", `{"items": [], "version": "https://jsonfeed.org/version/1"}`, "json", "1.0", 0, false},
		{"json feed with a null item", `{"version":"https://jsonfeed.org/version/1","items":[null,{"authors":[null]}]}`, "json", "1.0", 1, false},
		{"json feed with wrong types", `{"version":"https://jsonfeed.org/version/1","title":5,"hubs":"x","items":[{"id":7,"tags":"a","content_html":["x"]}]}`, "json", "1.0", 1, false},
		{"blank lines in front", strings.Repeat("\n", 5000) + rssSample, "rss", "2.0", 3, false},
		{"a long comment in front", "<!--" + strings.Repeat("x", 9000) + "-->" + rssSample[39:], "rss", "2.0", 3, false},
		{"a DOCTYPE", `<!DOCTYPE rss [<!ENTITY eacute "&#233;">]><rss><channel><title>&eacute;</title></channel></rss>`, "rss", "", 0, false},
		{"undeclared HTML entities", `<rss><channel><title>a&nbsp;b</title></channel></rss>`, "rss", "", 0, false},
		{"a comment behind", rssSample + "<!-- cached -->\n", "rss", "2.0", 3, false},
		{"xml 1.1", strings.Replace(rssSample, "1.0", "1.1", 1), "rss", "2.0", 3, false},

		{"an entity that was not declared", `<rss><channel><title>&a;</title></channel></rss>`, "rss", "", 0, true},
		{"a bare ampersand before a declaration in a text", strings.Replace(rssSample, "&amp;", "& <![CDATA[<?xml ?>]]>", 1), "rss", "2.0", 3, true},
		{"a bare ampersand", strings.Replace(rssSample, "&amp;", "&", 1), "rss", "2.0", 3, true},
		{"control characters", strings.Replace(rssSample, "Eins", "\x01\x00Eins&#0;", 1), "rss", "2.0", 3, true},
		{"unclosed HTML in a text", strings.Replace(rssSample, "Eins", "<br>Eins", 1), "rss", "2.0", 3, true},
		{"a warning in front", "<br />\n<b>Warning</b>: too many connections\n" + rssSample, "rss", "2.0", 3, true},
		{"text in front", "Warning: too many connections\n" + rssSample[39:], "rss", "2.0", 3, true},
		{"a script in front", "<script>if (1 < 2) {}</script>\n" + rssSample[39:], "rss", "2.0", 3, true},
		{"a comment in front that XML forbids", "<!-- a -- b -->" + rssSample[39:], "rss", "2.0", 3, true},
		{"a mark behind the declaration", rssSample[:38] + "\ufeff" + rssSample[38:], "rss", "2.0", 3, true},
		{"two documents", rssSample + rssSample, "rss", "2.0", 3, true},
		{"a script behind", rssSample + "<script>if (1 < 2) {}</script>", "rss", "2.0", 3, true},
		{"text behind", rssSample + "Warning: too many connections", "rss", "2.0", 3, true},
		{"a conflict marker", strings.Replace(rssSample, "<item>", "<<<<<<< HEAD\n<item>", 1), "rss", "2.0", 3, true},
		{"a wrong end tag", strings.Replace(rssSample, "</item>", "</itme>", 1), "rss", "2.0", 3, true},
		{"a wrong end tag in an entry", strings.Replace(rssSample, "</guid>", "</giud>", 1), "rss", "2.0", 3, true},
		{"a wrong end tag before the entries", strings.Replace(rssSample, "<item>", "</p><item>", 1), "rss", "2.0", 3, true},
		{"a root closed in capitals", strings.Replace(rssSample, "</rss>", "</RSS>", 1), "rss", "2.0", 3, true},
		{"a missing end tag", strings.Replace(rssSample, "</item>", "", 1), "rss", "2.0", 3, true},
		{"a missing end tag in an entry", strings.Replace(rssSample, "</title><guid>1", "<guid>1", 1), "rss", "2.0", 3, true},
		{"a missing end tag in the channel", strings.Replace(rssSample, "<item>", "<category>news<item>", 1), "rss", "2.0", 3, true},
		{"a root without an end tag", strings.TrimSuffix(rssSample, "</rss>"), "rss", "2.0", 3, true},
		{"cut off in an entry", rssSample[:strings.Index(rssSample, "mehr")], "rss", "2.0", 2, true},
		{"json and more", jsonSample + "x", "json", "1.1", 2, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			doc := read(t, test.body)
			if doc.Format != test.format || doc.Version != test.version || doc.Rhythm.Entries != test.entries || doc.Lenient != test.lenient {
				t.Errorf("%s %s with %d entries, lenient %v; want %s %s with %d, %v", doc.Format, doc.Version, doc.Rhythm.Entries,
					doc.Lenient, test.format, test.version, test.entries, test.lenient)
			}
		})
	}
}

func TestReadRefuses(t *testing.T) {
	tests := []struct {
		name, body string
		kind       error
		text       string // part of the message
	}{
		{"nothing", "", ErrNotFeed, "an empty document"},
		{"text", "Service temporarily\nunavailable", ErrNotFeed, `text that starts with "Service temporarily unavailable"`},
		{"a log-in page", "<!DOCTYPE html><html><head><meta charset=utf-8><title>\n Log&nbsp;in </title><body>", ErrNotFeed, `an HTML page titled "Log in"`},
		{"xhtml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body/></html>`, ErrNotFeed, "an HTML page"},
		{"a page that quotes a feed", "<html><body><pre><?xml version='1.0'?>" + rssSample, ErrNotFeed, "an HTML page"},
		{"a page of text", "Hello <html><title>x</title>" + rssSample, ErrNotFeed, `an HTML page titled "x"`},
		{"another XML document", `<opml version="2.0"><body/></opml>`, ErrNotFeed, "XML with the root element <opml>"},
		{"a feed within another document", `<soap><rss version="2.0"><channel/></rss></soap>`, ErrNotFeed, "<soap>"},
		{"rss without channel", `<rss version="2.0"/>`, ErrNotFeed, "<rss> without a channel"},
		{"rdf without rss", `<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><x xmlns="http://xmlns.com/foaf/0.1/"/></r:RDF>`, ErrNotFeed, "<RDF> without a channel"},
		{"a feed of something else", `<feed><product/></feed>`, ErrNotFeed, "<feed> without"},
		{"feed in an unknown namespace", `<feed xmlns="urn:x"><entry/></feed>`, ErrNotFeed, `unknown namespace "urn:x"`},
		{"an entry", `<entry xmlns="http://www.w3.org/2005/Atom"/>`, ErrNotFeed, "a single Atom entry"},
		{"json", `{"error": "rate limit"}`, ErrNotFeed, "JSON without a JSON Feed version"},
		{"a json array", `[1, 2]`, ErrNotFeed, "a JSON array"},
		{"jsonp", `f({"version":"https://jsonfeed.org/version/1"})`, ErrNotFeed, "text that starts with"},
		{"braces", `{% error %}`, ErrNotFeed, "is not JSON"},
		{"gzip", "\x1f\x8b\x08\x00\x00\x00", ErrNotFeed, "data of type application/x-gzip"},
		{"cut off before the entries", rssSample[:strings.Index(rssSample, "<item>")], ErrBroken, "broken feed: truncated after"},
		{"json cut off", jsonSample[:200], ErrBroken, "JSON truncated after 200 B"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			doc, err := Read([]byte(test.body), "application/rss+xml", now)
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("got %v, %v; want %v with %q", doc, err, test.kind, test.text)
			}
			if strings.ContainsAny(err.Error(), "\n\r\x00") {
				t.Errorf("not one line: %q", err)
			}
		})
	}
}

// A document that was cut anywhere must never pass for a shorter feed with an end.
func TestReadSeesEveryTruncation(t *testing.T) {
	for _, sample := range []string{rssSample, rdfSample, atomSample, jsonSample, strings.Replace(rssSample, "&amp;", "&", 1), "junk\n" + rssSample} {
		if _, err := Read([]byte(sample), "", now); err != nil {
			t.Fatalf("the whole sample: %v", err)
		}
		for n := range len(sample) {
			doc, err := Read([]byte(sample[:n]), "", now)
			if err == nil && !doc.Unclosed {
				t.Fatalf("cut after %d of %d bytes: %+v", n, len(sample), doc)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, sample := range []string{rssSample, rdfSample, atomSample, jsonSample, "<rss><channel><ttl>&", "<br>" + rssSample, "\xff\xfe<\x00r\x00",
		rssOpen + "<skipHours><hour>24</hour></skipHours><itunes:complete>yes</itunes:complete>" + rssClose + "x"} {
		f.Add([]byte(sample), "text/xml; charset=utf-8")
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		doc, err := Read(body, contentType, now)
		again, errAgain := Read(body, contentType, now)
		if !reflect.DeepEqual(doc, again) || (err == nil) != (errAgain == nil) {
			t.Fatalf("two readings differ: %+v, %v and %+v, %v", doc, err, again, errAgain)
		}
		if err != nil {
			if !errors.Is(err, ErrNotFeed) && !errors.Is(err, ErrBroken) && !errors.Is(err, ErrTooComplex) {
				t.Fatalf("an error without a kind: %v", err)
			}
			if strings.ContainsAny(err.Error(), "\n\r") {
				t.Fatalf("not one line: %q", err)
			}
			return
		}
		for i, hour := range doc.Hints.SkipHours {
			if hour < 0 || hour > 23 || i > 0 && hour <= doc.Hints.SkipHours[i-1] {
				t.Fatalf("hours %v", doc.Hints.SkipHours)
			}
		}
		if doc.Rhythm.Median < 0 || doc.Rhythm.Newest.After(now.Add(24*time.Hour)) {
			t.Fatalf("rhythm %+v", doc.Rhythm)
		}
		if len([]rune(doc.Title)) > 80 || strings.ContainsAny(doc.Title, "\n\r\x1b") {
			t.Fatalf("title %q", doc.Title)
		}
		if len(doc.Malformed) > maxMalformed || len(doc.Hints.Hubs) > maxHubs {
			t.Fatalf("%d malformed hints, %d hubs", len(doc.Malformed), len(doc.Hints.Hubs))
		}
	})
}
