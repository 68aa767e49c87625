// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"strings"
	"testing"
)

// from is the URL that the documents in these tests came from.
const from = "https://example.org/blog/feed.xml?key=secret"

const (
	rssOpen = `<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:media="http://search.yahoo.com/mrss/"><channel><title>/t</title>`
	rssClose  = `</channel></rss>`
	atomOpen  = `<feed xmlns="http://www.w3.org/2005/Atom"><title>/t</title>`
	atomClose = `</feed>`
	jsonOpen  = `{"version": "https://jsonfeed.org/version/1.1", `
)

// rewritten is what Served makes of a document: it must be the same when it is made twice.
func rewritten(t *testing.T, document string) (string, Report) {
	t.Helper()
	once, report := Served([]byte(document), "", from, false)
	twice, again := Served(once, "", from, false)
	if string(twice) != string(once) || again.Rewritten != 0 {
		t.Errorf("made twice: %s (%+v, then %+v)", twice, report, again)
	}
	return string(once), report
}

// Each test is a part of a document, in which a URL in guillemets is to be put in
// front of what follows it.
func TestAbsolute(t *testing.T) {
	item := func(text string) string { return rssOpen + "<item>" + text + "</item>" + rssClose }
	entry := func(text string) string { return atomOpen + "<entry>" + text + "</entry>" + atomClose }
	jsonItem := func(text string) string { return jsonOpen + `"items": [{"id": "/1", ` + text + `}]}` }
	tests := []struct{ name, want string }{
		{"rss links", rssOpen + `<link>«https://example.org»/</link>` + `<item><link> «https://example.org»/1
 </link><comments>«https://example.org/blog/»1#c</comments></item>` + rssClose},
		{"rss 1.0", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel rdf:about="/"><link>«https://example.org»/</link>` +
			`<items><rdf:Seq><rdf:li rdf:resource="/1"/></rdf:Seq></items></channel><image><url>«https://example.org»/i.png</url></image><item rdf:about="/1"><link>«https://example.org»/1</link></item></rdf:RDF>`},
		{"rss in a namespace of its own", `<rss xmlns="urn:x"><channel><link>«https://example.org»/</link></channel></rss>`},
		{"an image", rssOpen + `<image><url>«https://example.org»/i.png</url><link>«https://example.org»/</link></image>` + rssClose},
		{"a link with spaces", item(`<link>«https://example.org»/ä b/1.html</link><comments>«https://example.org»/1#a b</comments>`)},
		{"a link in pieces", item(`<link><!-- x --> «https://example.org»/<![CDATA[1]]></link>`)},
		{"enclosures and media", item(`<enclosure url="«https://example.org»/1.mp3" length="1"/><media:content url='«https://example.org/blog/»1.png'/><itunes:image href="«https://example.org»/1.png"/>`)},
		{"a channel's picture", rssOpen + `<itunes:image href="«https://example.org»/1.png"/><atom:link rel="alternate" href="«https://example.org/blog/»feed.xml"/>` + rssClose},
		{"a guid that is a permalink", item(`<guid isPermaLink="true">«https://example.org»/1</guid>`)},
		{"other guids", item(`<guid>/1</guid></item><item><guid isPermaLink="false">/1</guid></item><item><guid isPermaLink="true">1234</guid>`)},
		{"a description", item(`<description>&lt;a href="«https://example.org»/1"&gt;&lt;img src='«https://example.org/blog/»1.png'&gt;</description>`)},
		{"a description with escaped quotes", item(`<description>&lt;a href=&quot;«https://example.org»/1&quot;&gt;&#60;img src=&#x27;«https://example.org»/1.png&#39;&#62;</description>`)},
		{"a description in CDATA", item(`<description><![CDATA[<a class="x" href="«https://example.org»/1?a=1&amp;b=2">/1</a>]]></description>`)},
		{"CDATA beside escapes", item(`<description>&lt;a <![CDATA[href="«https://example.org»/1" title="]]>/x"&gt;</description>`)},
		{"markup that is not escaped", item(`<description>x <a href="«https://example.org»/1">1</a> &lt;a href="«https://example.org»/2"&gt; <link>/x</link></description>`)},
		{"full texts", item(`<content:encoded><![CDATA[<video poster="«https://example.org»/1.png"><source src="«https://example.org»/1.mp4"></video>]]></content:encoded>`)},
		{"media text", item(`<media:group><media:description type="html">&lt;a href="«https://example.org»/1"&gt;</media:description></media:group>`)},
		{"escaped twice is text", item(`<description>&amp;lt;a href="/1"&amp;gt;</description>`)},
		{"no attribute of HTML", item(`<description><![CDATA[<a name="/1" data="/1" data-src="/1">href="/1"</a><base href="/1">]]></description>`)},
		{"what holds no tags", item(`<description><![CDATA[<!-- <a href="/1"> --><script>"<a href='/1'>"</script><style><a href="/1"></style ><a href="«https://example.org»/2">]]></description>`)},
		{"without scripts", item(`<description><![CDATA[<noscript class="x"><img src="«https://example.org»/1.png"></noscript>]]></description>`)},
		{"a broken comment", item(`<description><![CDATA[<!' <a href="/1"> <a href="«https://example.org»/2">]]></description>`)},
		{"attributes of all kinds", item(`<description><![CDATA[<a href = «https://example.org»/1><A HREF="«https://example.org»/2"><a title='>' href='«https://example.org»/3'/><object data="«https://example.org»/4"><blockquote cite="«https://example.org»/5"><form action="«https://example.org»/6"><td background="«https://example.org»/7">]]></description>`)},
		{"srcset", item(`<description><![CDATA[<img srcset="«https://example.org»/a.png, «https://example.org/blog/»b,c.png 2x,data:image/png;base64,AA 3x ,«https://example.org»/d.png calc(1,2)">]]></description>`)},
		{"a tag that does not end", item(`<description><![CDATA[<a href="/1]]></description>`)},
		{"drawings", item(`<description><![CDATA[<svg><use href="#a"/></svg><a href="#b">]]></description>`)},
		{"obfuscated addresses", item(`<description><![CDATA[<a href="&#109;ailto:x">]]></description>`)},

		{"atom", `<feed xmlns="http://www.w3.org/2005/Atom"><id>/f</id><link href="«https://example.org»/"/><icon>«https://example.org»/i.ico</icon><logo>«https://example.org/blog/»l.png</logo>` +
			`<generator uri="«https://example.org»/g">/g</generator><author><uri>«https://example.org»/a</uri></author><entry><id>/1</id><link rel="enclosure" href="«https://example.org»/1.mp3"/></entry></feed>`},
		{"atom with a prefix", `<a:feed xmlns:a="https://www.w3.org/2005/Atom"><a:link href="«https://example.org»/"/></a:feed>`},
		{"atom html", entry(`<content type="html">&lt;a href="«https://example.org»/1"&gt;</content><summary type="text">&lt;a href="/1"&gt;</summary><title type='html'><![CDATA[<a href="«https://example.org»/1">]]></title>`)},
		{"atom content elsewhere", entry(`<content type="image/png" src="«https://example.org»/1.png"/>`)},
		{"atom xhtml", entry(`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><img src="«https://example.org»/1.png" srcset="«https://example.org»/2.png 2x"/><a href="?a=1&amp;b=2">/x</a><object data="«https://example.org»/o"/><p id="/x"/></div></content>`)},
		{"atom 0.3", `<feed version="0.3" xmlns="http://purl.org/atom/ns#"><author><url>«https://example.org»/a</url></author><url>/x</url><tagline mode="escaped" type="text/html">&lt;a href="«https://example.org»/"&gt;</tagline></feed>`},

		{"json", jsonOpen + `"home_page_url": "«https://example.org»/", "icon" : "«https://example.org/blog/»i.png", "author": {"url": "«https://example.org»/a"}, "authors": [{"avatar": "«https://example.org»/a.png"}], "_x": {"url": "/x"}, "title": "/t"}`},
		{"json items", jsonItem(`"url": "«https://example.org»\/1", "external_url": "«https:»//example.net/", "image": "«https://example.org»/1.png", "attachments": [{"url": "«https://example.org»/1.mp3", "title": "/x"}], "tags": ["/x"], "authors": [{"url": "«https://example.org»/a"}]`)},
		{"json html", jsonItem(`"content_html": "<a href=\"«https://example.org»\/1\">\u003cimg src=\u0022«https://example.org/blog/»1.png\"> \\ <a href='«https://example.org»/2'>", "content_text": "<a href='/1'>"`)},
		{"json that is no string", jsonItem(`"url": null, "image": ["/x"], "attachments": {"url": "/x"}`)},

		{"kinds of references", item(`<description><![CDATA[<a href="«https:»//example.net/x"><a href=""><a href=' '><a href="?x"><a href="#x"><a href><img src=""><a href="http://x/"><a href="mailto:x"><a href="data:,x"><a href="urn:x"><a href="HTTP:x"><a href="tel:1"><a href="«https://example.org/blog/»1:2/"><a href="«https://example.org/blog/»a b"><a href=" «https://example.org»/1 ">]]></description>`)},
		{"bytes that are no ASCII", item("<link>«https://example.org»/caf\xe9</link><description>&lt;a href='«https://example.org/»\xfc.html'&gt;</description>")},
		{"a document type", `<!DOCTYPE rss [<!ENTITY a "<link>/x</link>">]>` + item(`<link>«https://example.org»/1</link>`)},
		{"a byte order mark", "\ufeff<?xml version='1.0'?>\n" + item(`<link>«https://example.org»/1</link>`)},
		{"what is not quite XML", item(`<link>«https://example.org»/1</link> a & b &x; <br> <a b=c d></item><item><link>«https://example.org»/2</link>`)},
		{"as far as markup can be read", rssOpen + `<item><link>«https://example.org»/1</link></item><item>a < b<link>/2</link></item>` + rssClose},
		{"before a wrong end tag", rssOpen + `<item><link>«https://example.org»/1</link></p></item><item><link>/2</link></item>` + rssClose},
		{"without an end", rssOpen + `<item><link>«https://example.org»/1</link></item>`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before, want := plain(test.want), strings.NewReplacer("«", "", "»", "").Replace(test.want)
			got, report := rewritten(t, before)
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if n := strings.Count(test.want, "«"); report.Rewritten != n || report.Problem != "" {
				t.Errorf("report %+v, want %d", report, n)
			}
		})
	}
}

// plain leaves out what is in guillemets.
func plain(text string) string {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, "«")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		_, text, _ = strings.Cut(rest, "»")
	}
}

func TestDotSegments(t *testing.T) {
	for reference, want := range map[string]string{
		"./1": "https://example.org/blog/1", "../1": "https://example.org/1", "../../../1": "https://example.org/1", "./../1": "https://example.org/1",
		".": "https://example.org/blog/", "..": "https://example.org/", "../": "https://example.org/", ".1": "https://example.org/blog/.1", "..1": "https://example.org/blog/..1",
		"1/../2": "https://example.org/blog/1/../2", ".//1": ".//1", "..//1": "..//1",
	} {
		want = rssOpen + `<item><enclosure url="` + want + `"/></item>` + rssClose
		if got, _ := rewritten(t, rssOpen+`<item><enclosure url="`+reference+`"/></item>`+rssClose); got != want {
			t.Errorf("%s: got %s", reference, got)
		}
	}
}

func TestXMLBase(t *testing.T) {
	tests := []struct{ name, before, want string }{
		{"of the document", `<feed xml:base="http://a.example/b/c" xmlns="http://www.w3.org/2005/Atom"><link href="d"/></feed>`,
			`<feed xml:base="http://a.example/b/c" xmlns="http://www.w3.org/2005/Atom"><link href="http://a.example/b/d"/></feed>`},
		{"relative, and nested", `<feed xml:base="/a/" xmlns="http://www.w3.org/2005/Atom"><entry xml:base="b/"><link href="c" xml:base="../d/"/></entry><link href="e"/></feed>`,
			`<feed xml:base="https://example.org/a/" xmlns="http://www.w3.org/2005/Atom"><entry xml:base="https://example.org/a/b/"><link href="https://example.org/a/d/c" xml:base="https://example.org/a/d/"/></entry><link href="https://example.org/a/e"/></feed>`},
		{"of a text", `<feed xmlns="http://www.w3.org/2005/Atom"><entry><content type="html" xml:base="http://a.example/b/">&lt;a href="c"&gt;</content></entry></feed>`,
			`<feed xmlns="http://www.w3.org/2005/Atom"><entry><content type="html" xml:base="http://a.example/b/">&lt;a href="http://a.example/b/c"&gt;</content></entry></feed>`},
		{"with characters that need escapes", `<feed xml:base="http://a.example/b&amp;'c/" xmlns="http://www.w3.org/2005/Atom"><link href="d"/><entry><content type="html">&lt;a href="d"&gt;</content></entry></feed>`,
			`<feed xml:base="http://a.example/b&amp;'c/" xmlns="http://www.w3.org/2005/Atom"><link href="http://a.example/b&amp;&#39;c/d"/><entry><content type="html">&lt;a href="http://a.example/b&amp;amp;&amp;#39;c/d"&gt;</content></entry></feed>`},
		{"that is no base", `<feed xml:base="tag:x" xmlns="http://www.w3.org/2005/Atom"><link href="/d"/><entry xml:base="http://a.example/"><link href="d"/></entry></feed>`,
			`<feed xml:base="tag:x" xmlns="http://www.w3.org/2005/Atom"><link href="/d"/><entry xml:base="http://a.example/"><link href="http://a.example/d"/></entry></feed>`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, _ := rewritten(t, test.before); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// References that cannot be resolved with certainty stay as they are.
func TestLeftAlone(t *testing.T) {
	item := func(text string) string { return rssOpen + "<item>" + text + "</item>" + rssClose }
	tests := []struct {
		name, body, contentType, base string
		problem                       string
	}{
		{"several words", item(`<link>not a link</link>`), "", from, ""},
		{"a template", item(`<link>{{ url }}</link><enclosure url="{url}"/>`), "", from, ""},
		{"an escaped URL", item(`<link>http%3A%2F%2Fexample.net%2F</link>`), "", from, ""},
		{"a line within", item("<enclosure url='/a\n/b'/>"), "", from, ""},
		{"hidden by escapes", item(`<description><![CDATA[<a href="a&amp;b">]]></description>`), "", from, ""},
		{"dots across a border", item(`<link>.<![CDATA[./1]]></link>`), "", from, ""},
		{"no base", item(`<link>/1</link>`), "", "gopher://example.org/", problemBase},
		{"UTF-16", "\xff\xfe<\x00r\x00s\x00s\x00>\x00", "", from, problemEncoding},
		{"ISO-2022-JP", item(`<link>/1</link>`), "text/xml; charset=ISO-2022-JP", from, problemEncoding},
		{"JSON that is not UTF-8", jsonOpen + "\"icon\": \"/\x83\\\"}", "", from, problemEncoding},
		{"deep", strings.Repeat("<x>", 1000) + `<link href="/1"/>`, "", from, problemMarkup},
		{"large", item(strings.Repeat(`<enclosure url="/"/>`, 10_000)), "", "https://" + strings.Repeat("x", 200) + "/", problemGrowth},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, report := Served([]byte(test.body), test.contentType, test.base, false)
			if want := (Report{Problem: test.problem}); report != want {
				t.Errorf("report %+v, want %+v", report, want)
			}
			if string(got) != test.body {
				t.Errorf("changed: %s", got)
			}
		})
	}
}

// A document without relative URLs is not copied.
func TestAbsoluteReturnsTheSameBody(t *testing.T) {
	for _, body := range []string{"", " ", "{", "<", rssOpen + `<link>https://example.org/</link>` + rssClose, jsonOpen + `"icon": "https://example.org/i"}`, "not a feed"} {
		before := []byte(body)
		after, report := Served(before, "", from, false)
		if len(after) != len(before) || len(before) > 0 && &after[0] != &before[0] || report.Rewritten != 0 {
			t.Errorf("%q: %q, %+v", before, after, report)
		}
	}
}

// An entity of the document's own may stand for anything: what it makes of a URL is
// uncertain, and the URL stays as it is.
func TestAbsoluteKeepsEntities(t *testing.T) {
	const doctype = `<!DOCTYPE rss [<!ENTITY home "https://example.org/">]>`
	const body = doctype + rssOpen + `<item><link>&home;1</link><enclosure url="&home;1.mp3"/><guid isPermaLink="true">&home;1</guid>` +
		`<description>&lt;a href="&home;1"></description><content:encoded><a href="&home;1"/></content:encoded></item>` + rssClose
	got, report := Served([]byte(body), "", from, false)
	if string(got) != body || report != (Report{}) {
		t.Errorf("%+v: %s", report, got)
	}
	const based = doctype + `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="&home;"><link href="x"/><link href="https://example.net/&home;"/></feed>`
	if got, report := Served([]byte(based), "", from, false); string(got) != based || report != (Report{}) {
		t.Errorf("%+v: %s", report, got)
	}
}
