// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	long := strings.Repeat("x", prefixSize)
	for _, tt := range []struct {
		name, body string
		want       detection // of all of it
	}{
		{"RSS", `<?xml version="1.0"?><rss version="2.0"><channel>`, isFeed},
		{"Atom", "\xef\xbb\xbf\n<feed xmlns=\"http://www.w3.org/2005/Atom\">", isFeed},
		{"RDF", `<rdf:RDF xmlns:rdf="x">`, isFeed},
		{"Atom with a prefix", `<a:feed xmlns:a="http://www.w3.org/2005/Atom">`, isFeed},
		{"upper case", `<RSS>`, isFeed},
		{"comments and a stylesheet", `<?xml version="1.0"?><?xml-stylesheet href="x"?><!-- <html> --><rss>`, isFeed},
		{"a doctype", `<!DOCTYPE rss SYSTEM "x"><rss>`, isFeed},
		{"a doctype with entities", `<?xml version="1.0"?><!DOCTYPE rss [<!ENTITY nbsp "&#160;"> ] ><rss>`, isFeed},
		{"two byte order marks", "\xef\xbb\xbf\xef\xbb\xbf<?xml version=\"1.0\"?><rss>", isFeed},
		{"a long comment", `<!-- ` + long, isFeed},
		{"a warning in front", "<br />\n<b>Warning</b>: x<br />\n<?xml version=\"1.0\"?><rss>", isFeed},
		{"text in front", "Notice: x\n<rss version=\"2.0\">", isFeed},
		{"text behind the declaration", "<?xml version=\"1.0\"?>Notice: x\n<rss version=\"2.0\">", isFeed},
		{"a script in front", "<script>x</script><feed xmlns=\"x\">", isFeed},
		{"a page with a feed in it", "<p>x</p><html><rss>", notFeed},
		{"a feed in another document", "<soap><rss>", notFeed},
		{"UTF-16", "\xff\xfe<\x00r\x00", isFeed},
		{"JSON Feed", `{"version": "https://jsonfeed.org/version/1.1", "title": "x"`, isFeed},
		{"JSON Feed in another order", `{"title": "x", "items": [`, isFeed},
		{"HTML", `<!DOCTYPE html><html>`, notFeed},
		{"HTML without a doctype", "\n <HTML lang=en>", notFeed},
		{"HTML in pieces", `<br /><b>Warning</b>`, notFeed},
		{"XHTML", `<?xml version="1.0"?><!DOCTYPE html PUBLIC "x"><html>`, notFeed},
		{"XHTML with entities", `<!DOCTYPE html [<!ENTITY nbsp "&#160;">]><html>`, notFeed},
		{"a sitemap", `<?xml version="1.0"?><urlset>`, notFeed},
		{"SVG", `<svg xmlns="x">`, notFeed},
		{"OPML", `<opml version="2.0">`, notFeed},
		{"JSON", `{"i":0}` + "\n" + `{"i":1}`, notFeed},
		{"a list", `[{"version": 1}]`, notFeed},
		{"text", "hello", notFeed},
		{"an image", "\x89PNG\r\n\x1a\n", notFeed},
		{"nothing", "", notFeed},
		{"white space", " \n", notFeed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := detect([]byte(tt.body), true); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			// No prefix of it gives the opposite result.
			for i := range len(tt.body) {
				if got := detect([]byte(tt.body[:i]), false); got != unknown && got != tt.want {
					t.Fatalf("%q: got %v, want %v or none", tt.body[:i], got, tt.want)
				}
			}
		})
	}
}

func FuzzDetect(f *testing.F) {
	f.Add([]byte("<?xml?><!-- --><rss"))
	f.Add([]byte("<!DOCTYPE <"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if detect(body, true) == unknown {
			t.Error("all of it is undecided")
		}
	})
}

func TestLikely(t *testing.T) {
	for _, tt := range []struct {
		target, accept string
		want           bool
	}{
		{"/feed", "", true},
		{"/feed/", "", true},
		{"/blog/feeds/posts/default", "", true},
		{"/index.xml", "", true},
		{"/atom.xml?x", "", true},
		{"/rss2.php", "", true},
		{"/?feed=rss2", "", true},
		{"/news?format=rss", "", true},
		{"/RSS", "", true},
		{"/posts", "application/atom+xml,text/xml;q=0.9", true},
		{"/", "", false},
		{"/page", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", false},
		{"/feedback", "", false},
		{"/search?q=feed", "", false},
		{"/my-feeds", "", false},
		{"/grass", "", false},
		{"/atomic", "", false},
		{"/wp-content/uploads/a.jpg", "", false},
		{"/api/items.json", "", false},
	} {
		r := httptest.NewRequest("GET", "http://blog.test"+tt.target, nil)
		r.Header.Set("Accept", tt.accept)
		if got := likely(r); got != tt.want {
			t.Errorf("%s, %s: %v", tt.target, tt.accept, got)
		}
	}
}
