// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"strings"
	"testing"
)

func TestServed(t *testing.T) {
	tests := []struct{ name, before, want string }{
		{"rss", rssOpen + `<atom:link href="https://example.org/f" rel="self"/><atom:link rel="hub" href="https://hub.example/"/><link>/</link>` + rssClose,
			rssOpen + `<link>https://example.org/</link>` + rssClose},
		{"atom", atomOpen + `<link rel='self' href='f'/> <link rel="http://www.iana.org/assignments/relation/hub" href="h"></link>
<link href="/"/><entry><link rel="self" href="http://x/1"/><link rel="hub" href="http://h/"/></entry>` + atomClose,
			atomOpen + ` 
<link href="https://example.org/"/><entry><link rel="self" href="http://x/1"/><link rel="hub" href="http://h/"/></entry>` + atomClose},
		{"several relations", atomOpen + `<link rel="Hub self hub" href="f"/><link rel="hub alternate self" href="http://x/f"/>` + atomClose,
			atomOpen + `<link rel=" alternate " href="http://x/f"/>` + atomClose},
		{"relations given twice", atomOpen + `<link rel="self alternate" rel="hub" href="http://x/f"/>` + atomClose,
			atomOpen + `<link rel=" alternate" rel="" href="http://x/f"/>` + atomClose},
		{"a new address", rssOpen + `<itunes:new-feed-url> <![CDATA[https://example.net/f]]></itunes:new-feed-url><itunes:new-feed-url/><item><itunes:new-feed-url>x</itunes:new-feed-url></item>` + rssClose,
			rssOpen + `<item><itunes:new-feed-url>x</itunes:new-feed-url></item>` + rssClose},
		{"push services", `<rss xmlns:p="https://podcastindex.org/namespace/1.0"><channel><cloud domain="rpc.example.org" port="80"/><p:podping usesPodping="true"></p:podping><item><cloud>x</cloud></item></channel></rss>`,
			`<rss xmlns:p="https://podcastindex.org/namespace/1.0"><channel><item><cloud>x</cloud></item></channel></rss>`},
		{"links of another namespace", `<rss><channel><link rel="self" href="http://x/"/><x:link xmlns:x="urn:x" rel="hub"/></channel></rss>`, ""},
		{"a hub with elements in it", atomOpen + `<link rel="hub" href="h"> <x>y</x> </link >z` + atomClose, atomOpen + `z` + atomClose},
		{"json", `{"feed_url": "https:\/\/example.org/f", "items": [{"feed_url": "x", "hubs": []}], "hubs": [{"url": "x"}], "title": "t"}`,
			`{"items": [{"feed_url": "x", "hubs": []}], "title": "t"}`},
		{"hubs first", `{ "hubs": [], "title": "t"}`, `{ "title": "t"}`},
		{"hubs last", `{"title": "t" , "hubs": []}`, `{"title": "t"}`},
		{"nothing else", `{"hubs": [], "feed_url": "x", "hubs": []}`, `{}`},
		{"several times at the end", `{"a": 1, "hubs": [], "b": 2, "hubs": [1], "feed_url": "" }`, `{"a": 1, "b": 2 }`},
		{"UTF-16", "\xff\xfe<\x00f\x00", ""},
		{"nothing", " ", ""},
		{"white space around it", " \n<?xml version='1.0'?>\n" + rssOpen + rssClose + "\n", "<?xml version='1.0'?>\n" + rssOpen + rssClose + "\n"},
		{"marks in front", "\ufeff\ufeff<?xml version='1.0'?>" + rssOpen + rssClose, "\ufeff<?xml version='1.0'?>" + rssOpen + rssClose},
		{"a warning in front", "<br />Warning: <?xml version='1.0'?>" + rssOpen + rssClose, "<?xml version='1.0'?>" + rssOpen + rssClose},
		{"a warning behind the declaration", "<?xml version='1.0'?>\nWarning: " + rssOpen + rssClose, "<?xml version='1.0'?>" + rssOpen + rssClose},
		{"a declaration of nothing", "x<?xml version='1.0'?>", "<?xml version='1.0'?>"},
		{"two declarations", "<?xml version='1.0'?><br/><?xml version='1.1'?>" + rssOpen + rssClose, "<?xml version='1.0'?>" + rssOpen + rssClose},
		{"scripts", "<script>1 < 2</script>" + rssOpen + rssClose + "\n<script>1 < 2</script>", rssOpen + rssClose},
		{"text behind", atomOpen + atomClose + "Warning", atomOpen + atomClose},
		{"another document", rssOpen + rssClose + atomOpen + atomClose, rssOpen + rssClose},
		{"a style sheet", "<?xml version='1.0'?><?xml-stylesheet href='/rss.xsl'?><!DOCTYPE rss><!-- x -->" + rssOpen + rssClose, "<?xml version='1.0'?><!DOCTYPE rss><!-- x -->" + rssOpen + rssClose},
		{"forbidden characters", rssOpen + "<item>\x01a\x0bb\x00&#1;</item>" + rssClose, rssOpen + "<item> a b     </item>" + rssClose},
		{"forbidden characters in another encoding", "<?xml version='1.0' encoding='iso-8859-1'?>" + rssOpen + "<item>\xe4\x01\xff</item>" + rssClose, "<?xml version='1.0' encoding='iso-8859-1'?>" + rssOpen + "<item>\xe4 \xff</item>" + rssClose},
		{"a wrong end tag in the middle", rssOpen + "</p><item/>" + rssClose + "x", ""},
		{"JSON and more", jsonOpen + `"title": "t"}` + "\n<!-- x -->", jsonOpen + `"title": "t"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := test.want
			if want == "" {
				want = test.before
			}
			got, _ := Served([]byte(test.before), "", from, false)
			if string(got) != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if again, _ := Served(got, "", from, false); string(again) != string(got) {
				t.Errorf("made twice: %s", again)
			}
		})
	}
}

// A document of a megabyte of hubs becomes small.
func TestServedOfManyHubs(t *testing.T) {
	body := atomOpen + strings.Repeat(`<link rel="hub"/>`, 60_000) + atomClose
	if got, _ := Served([]byte(body), "", from, false); string(got) != atomOpen+atomClose {
		t.Errorf("%d bytes are left", len(got))
	}
}
