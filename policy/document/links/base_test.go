// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"strings"
	"testing"
)

// Relative URLs in HTML refer to xml:base, or to the address of the entry, of the channel, or of
// the document, in this order, wherever the address stands. A URL in guillemets is put in front.
func TestBaseOfHTML(t *testing.T) {
	const picture, rooted = `&lt;img src="«https://b.example/1/»a.png"&gt;`, `&lt;img src="«https://b.example»/a.png"&gt;`
	const burner = `xmlns:f="http://rssnamespace.org/feedburner/ext/1.0"`
	const planet = `<div xmlns="http://www.w3.org/1999/xhtml"><img src="«https://b.example/1/»a.png"/><a href="#note">1</a></div>`
	item := func(text string) string { return rssOpen + "<item>" + text + "</item>" + rssClose }
	site := func(text string) string { return rssOpen + `<link>https://b.example/1/</link>` + text + rssClose }
	entry := func(text string) string { return atomOpen + "<entry>" + text + "</entry>" + atomClose }
	rdf := func(text string) string {
		return `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">` + text + `</rdf:RDF>`
	}
	for name, want := range map[string]string{
		"rss, the link":              item(`<link>https://b.example/1/</link><description>` + picture + `&lt;a href="#fn:1"&gt;&lt;a href=""&gt;</description>`),
		"rss, behind its content":    item(`<description>` + picture + `</description><link> https://b.example/1/x </link>`),
		"rss, a relative link":       item(`<description>&lt;img src="«https://example.org/1/»a.png"&gt;</description><link>«https://example.org»/1/</link>`),
		"rss, a query is the page's": item(`<link>https://b.example/x.php?id=1</link><description>&lt;a href="«https://b.example/x.php»?id=2"&gt;</description>`),
		"rss, the original link":     item(`<link>https://count.example/1</link><f:origLink ` + burner + `>https://b.example/1/</f:origLink><guid>https://c.example/</guid><description>` + picture + `</description>`),
		"rss, a link of Atom":        item(`<atom:link href="https://b.example/1/"/><guid>https://c.example/</guid><description>` + picture + `</description>`),
		"rss, a link of either kind": item(`<atom:link href="https://c.example/1/"/><link>https://b.example/1/</link><description>` + picture + `</description>`),
		"rss, a permalink":           item(`<guid>https://b.example/1/</guid><description>` + picture + `</description>`),
		"rss, a relative permalink":  item(`<guid isPermaLink="true">«https://example.org»/1/</guid><description>&lt;img src="«https://example.org/1/»a.png"&gt;</description>`),
		"rss, guids that are none":   site(`<item><guid isPermaLink="false">https://c.example/</guid><description>` + picture + `</description></item><item><guid>/2/3</guid><description>` + picture + `</description></item>`),
		"rss, links that are none":   site(`<item><link>{{ url }}</link><guid>mailto:x</guid><description>` + picture + `</description></item>`),
		"rss, the site afterwards":   rssOpen + `<item><description>` + picture + `</description></item><link>https://b.example/1/</link>` + rssClose,
		"rss, the description of it": site(`<description>` + rooted + `</description><image><link>https://c.example/</link></image>`),
		"rss, entry by entry":        site(`<item><link>https://c.example/</link></item><item><description>` + picture + `</description></item>`),
		"rss, no address":            item(`<description>&lt;img src="«https://example.org/blog/»a.png"&gt;</description>`),
		"rss, a link blog":           item(`<link>https://b.example/1/</link><guid isPermaLink="true">https://example.org/2</guid><description>` + picture + `</description>`),
		"rss, mixed content":         item(`<description>x <img src="«https://b.example/1/»a.png"/> ` + picture + `</description><link>https://b.example/1/</link>`),
		"rss, parts of a podcast":    item(`<link>https://b.example/1/</link><itunes:summary>` + picture + `</itunes:summary><media:group><media:description>` + picture + `</media:description></media:group><enclosure url="«https://example.org/blog/»1.mp3"/>`),
		"rss, another item within":   item(`<x><item><link>https://c.example/</link></item></x><link>https://b.example/1/</link><description>` + picture + `</description>`),
		"rss, xml:base of the root":  `<rss xml:base="https://b.example/1/"><channel><item><link>https://c.example/</link><description>` + picture + `</description></item></channel></rss>`,
		"rss, xml:base of an item":   rssOpen + `<item xml:base="https://b.example/1/"><description>` + picture + `</description><link>«https://b.example»/2/</link></item>` + rssClose,

		"rdf":           rdf(`<channel><link>https://c.example/</link></channel><item><link>https://b.example/1/</link><description>` + picture + `</description></item>`),
		"rdf, the site": rdf(`<item><description>` + picture + `</description></item><channel><link>https://b.example/1/</link></channel>`),

		"atom":                         entry(`<content type="html">` + picture + `</content><link rel="alternate" href="https://b.example/1/"/>`),
		"atom, the first link":         entry(`<link rel="enclosure" href="https://c.example/"/><link href="https://b.example/1/"/><link href="https://d.example/"/><title type="html">` + picture + `</title>`),
		"atom, other relations":        atomOpen + `<link href="https://b.example/1/"/><entry><link rel="via" href="https://c.example/"/><summary type="html">` + picture + `</summary></entry>` + atomClose,
		"atom, a relation as a URI":    entry(`<link rel="http://www.iana.org/assignments/relation/alternate" href="https://b.example/1/"/><summary type="html">` + picture + `</summary>`),
		"atom, a planet":               entry(`<content type="xhtml">` + planet + `</content><link href="https://b.example/1/"/><source><link href="https://c.example/"/></source>`),
		"atom, xml:base of the root":   `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://b.example/"><entry><link href="«https://b.example/»2/"/><content type="html">&lt;img src="«https://b.example/»a.png"&gt;</content></entry></feed>`,
		"atom, xml:base of a planet":   atomOpen + `<entry xml:base="https://b.example/1/"><content type="xhtml">` + planet + `</content><link href="https://c.example/"/></entry>` + atomClose,
		"atom, xml:base of a content":  entry(`<link href="https://c.example/"/><content type="html" xml:base="https://b.example/1/">` + picture + `</content>`),
		"atom, xml:base of an element": entry(`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml" xml:base="https://b.example/1/"><img src="«https://b.example/1/»a.png"/></div></content>`),
		"atom 0.3":                     `<feed version="0.3" xmlns="http://purl.org/atom/ns#"><entry><content mode="escaped">` + picture + `</content><link rel="alternate" href="https://b.example/1/"/></entry></feed>`,

		"json":                 jsonOpen + `"items": [{"content_html": "<img src='«https://b.example/1/»a.png'><a href='#x'>", "external_url": "https://c.example/", "url": "https://b.example/1/"}, {"content_html": "<img src='«https://example.org/blog/»a.png'>"}]}`,
		"json, the site":       jsonOpen + `"items": [{"content_html": "<img src='«https://b.example/1/»a.png'>", "external_url": "https://c.example/"}], "home_page_url": "https://b.example/1/"}`,
		"json, a relative url": jsonOpen + `"items": [{"content_html": "<img src='«https://example.org/1/»a.png'>", "url": "«https://example.org»/1/"}]}`,

		// Readers show no pictures of http in a page of https.
		"http on the feed's host":    item(`<link>http://Example.org/1/</link><description>&lt;img src="«https://Example.org/1/»a.png"&gt;&lt;img srcset="«https:»//c.example/b.png 2x, «https://Example.org/1/»c.png"&gt;</description>`),
		"http elsewhere":             item(`<link>http://b.example/1/</link><description>&lt;img src="«http://b.example/1/»a.png"&gt;&lt;img src="«https:»//c.example/a.png"&gt;</description>`),
		"http in xml:base":           `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://example.org/1/"><entry><link href="«http://example.org/1/»x"/><content type="html">&lt;img src="«https://example.org/1/»a.png"&gt;</content></entry></feed>`,
		"podcasts":                   item(`<p:alternateEnclosure xmlns:p="https://podcastindex.org/namespace/1.0"><p:source uri="«https://example.org»/a.opus"/></p:alternateEnclosure><p:remoteItem xmlns:p="https://podcastindex.org/namespace/1.0" feedUrl="«https://example.org»/x.xml" itemGuid="/x"/>`),
		"a query of the site itself": site(`<item><description>&lt;a href="«https://b.example/1/»?p=1"&gt;</description></item><item><link>?p=1</link></item>`),
	} {
		t.Run(name, func(t *testing.T) {
			got, report := rewritten(t, plain(want))
			if want := strings.NewReplacer("«", "", "»", "").Replace(want); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if n := strings.Count(want, "«"); report.Rewritten != n {
				t.Errorf("%+v, want %d", report, n)
			}
		})
	}
}

// User name, password, query and the document's own name may be secrets: no link repeats them. Of a
// secret URL nothing but its host is written, and no link of the feed to it is left.
func TestSecretsAreNotWritten(t *testing.T) {
	const own = "https://bob:hunter2@api.example/hunter2/hunter2.rss"
	everything := []string{
		`<rss xmlns:atom="http://www.w3.org/2005/Atom"><channel><atom:link rel="first" href="?page=1"/><link>https://api.example/hunter2/hunter2.rss</link><atom:link href="https://api.example/hunter2/hunter2.rss?page=2" rel="next"/>` +
			`<item><link>1</link><enclosure url="?a"/><enclosure url="1.mp3"/><description>&lt;a href="#x"&gt;&lt;a href=""&gt;&lt;a href="?"&gt;&lt;img src="a.png"&gt;</description></item><item><link>?p=1</link></item></channel></rss>`,
		`<feed xmlns="http://www.w3.org/2005/Atom" xml:base=""><link rel="http://schemas.google.com/g/2005#feed" href="https://api.example/hunter2/hunter2.rss"/><entry xml:base="#x"><id>1</id><link href=""/><link rel="next" href="x"/>` +
			`<source xml:base="?a=1"><link rel="self" href="https://api.example/hunter2/hunter2.rss"/><link href="../a"/></source></entry></feed>`,
		`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://api.example/hunter2/hunter2.rss"><entry><link href="a"/><content type="html">&lt;img src="a.png"&gt;&lt;a href="?x"&gt;</content></entry></feed>`,
		jsonOpen + `"home_page_url": "https://api.example/hunter2/hunter2.rss", "feed_url": "x", "icon": "i.png", "next_url": "?page=2", "items": [{"content_html": "<img src='a.png'>", "url": "?"}]}`,
	}
	for _, body := range everything {
		once, _ := Served([]byte(body), "", own+"?token=hunter2", true)
		if own, _ := Served([]byte(body), "", own, true); strings.Contains(string(own), "hunter2") {
			t.Errorf("left: %s", own)
		}
		if twice, _ := Served(once, "", own+"?token=hunter2", true); string(twice) != string(once) {
			t.Errorf("made twice: %s becomes %s", once, twice)
		}
	}
	relative := `<rss><channel><item><link>?p=1</link><enclosure url="?a"/><enclosure url="1.mp3"/><description>&lt;a href="?x"&gt;&lt;a href="#x"&gt;</description></item></channel></rss>`
	got, report := Served([]byte(relative), "", "https://bob:hunter2@example.org/a/hunter2?token=hunter2", false)
	if report.Rewritten != 1 || strings.Contains(string(got), "hunter2") {
		t.Errorf("%+v: %s", report, got)
	}
	// What has no path has no secret in it, and another page of the same script stays.
	home := `<rss><channel><link>https://example.org/</link><item><link>?p=1</link></item></channel></rss>`
	if got, _ := Served([]byte(home), "", "https://example.org/?feed=rss2", true); string(got) != strings.Replace(home, "?p=1", "https://example.org/?p=1", 1) {
		t.Errorf("at the root: %s", got)
	}
	forum := `<rss><channel><link>https://example.org/index.php</link></channel></rss>`
	if got, _ := Served([]byte(forum), "", "https://example.org/index.php?feed", true); string(got) != forum {
		t.Errorf("another page: %s", got)
	}
}

// Served reports whether the document's own URL has a part in what is served.
func TestOwnURLCounts(t *testing.T) {
	for body, want := range map[string]bool{
		`<rss><channel><item><link>https://b.example/</link><description>&lt;img src="a.png"&gt;</description></item></channel></rss>`:             false,
		`<rss><channel><item><link>https://b.example/</link><description>&lt;img src="//c.example/a.png"&gt;</description></item></channel></rss>`: true,
		`<rss><channel><item><link>/1/</link></item></channel></rss>`:                                                                              true,
		`<rss xml:base="/x/"><channel><link>1</link></channel></rss>`:                                                                              true,
		`<rss xml:base="https://b.example/x/"><channel><link>1</link></channel></rss>`:                                                             false,
	} {
		if _, report := Served([]byte(body), "", from, false); report.Own != want || report.Rewritten == 0 {
			t.Errorf("%s: %+v", body, report)
		}
	}
}
