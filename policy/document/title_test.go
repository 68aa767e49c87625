// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"strings"
	"testing"
)

func TestTitles(t *testing.T) {
	rss := func(channel string) string { return `<rss version="2.0"><channel>` + channel + `</channel></rss>` }
	atom := func(feed string) string { return `<feed xmlns="http://www.w3.org/2005/Atom">` + feed + `</feed>` }
	for _, tt := range []struct{ name, document, want string }{
		{"of a channel", rss(`<title> One
			blog</title><item><title>An entry</title></item>`), "One blog"},
		{"behind the entries", rss(`<item><title>An entry</title></item><title>A blog</title>`), "A blog"},
		{"of an image or a field", rss(`<image><title>An image</title></image><textInput><title>A field</title></textInput>`), ""},
		{"of another vocabulary", rss(`<i:title xmlns:i="http://www.itunes.com/dtds/podcast-1.0.dtd">A show</i:title>`), ""},
		{"the first of two", rss(`<title>One</title><title>Two</title>`), "One"},
		{"escaped twice", rss(`<title>Tom &amp;amp; Jerry</title>`), "Tom & Jerry"},
		{"with markup", rss(`<title>&lt;script src="x"&gt;alert(1)&lt;/script&gt; &lt;b&gt;bold&lt;/b&gt;</title>`), "alert(1) bold"},
		{"with less than", rss(`<title><![CDATA[1 < 2 & 3 > 2]]></title>`), "1 < 2 & 3 > 2"},
		{"text of Atom", atom(`<title>1 &lt;b> 2 &amp;amp;</title>`), "1 <b> 2 &amp;"},
		{"HTML of Atom", atom(`<title type="html">&lt;em>Less&lt;/em> &amp;amp; more</title>`), "Less & more"},
		{"XHTML of Atom", atom(`<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">A blog</div></title>`), "A blog"},
		{"none", atom(`<subtitle>Nothing</subtitle>`), ""},
		{"of JSON Feed", `{"version":"https://jsonfeed.org/version/1","title":"A \u001b[31mblog\n","items":[]}`, "A [31mblog"},
		{"too long", rss(`<title>` + strings.Repeat("long ", 2000) + `</title>`), strings.Repeat("long ", 15) + "long…"},
	} {
		if got := read(t, tt.document).Title; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
