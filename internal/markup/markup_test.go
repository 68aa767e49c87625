// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package markup

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"
)

// The text of a document is the same in all tokens, and each knows where it stands.
func TestSpans(t *testing.T) {
	const text = `<!DOCTYPE rss [<!ENTITY a "b>">]><rss><!-- x --><a b="&lt;"/>x &a;<![CDATA[<y>]]></rss>`
	s := NewScanner([]byte(text), false)
	var got []string
	for {
		_, err := s.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, text[s.Span().Start:s.Span().End])
	}
	want := []string{`<!DOCTYPE rss [<!ENTITY a "b>">]>`, "<rss>", "<!-- x -->", `<a b="&lt;"/>`, "", "x &a;", "<![CDATA[<y>]]>", "</rss>"}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// An entity that a document declares is well-formed, and is not expanded.
func TestOwnEntities(t *testing.T) {
	const declared = `<!DOCTYPE rss [ <!ENTITY me "Rachel"> <!ENTITY % p "x"> <!ENTITY copy SYSTEM "file:///etc/passwd">]>`
	for text, want := range map[string]string{declared + "<rss>&me; &copy;</rss>": "&me; ©", "<rss>&me;</rss>": "", declared + "<rss>&p;</rss>": ""} {
		s := NewScanner([]byte(text), false)
		got := ""
		for {
			token, err := s.Next()
			if err != nil {
				if (err == io.EOF) != (want != "") {
					t.Errorf("%s: %v", text, err)
				}
				break
			}
			if data, ok := token.(xml.CharData); ok {
				got += string(data)
			}
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	if len(xml.HTMLEntity) != 252 {
		t.Errorf("the entities of HTML are %d", len(xml.HTMLEntity))
	}
}

func TestRepair(t *testing.T) {
	for text, want := range map[string]string{
		"a\x01b\x00\t\n": "a b \t\n", "&#0;&#1;&#x1F;&#x20;&#9;": strings.Repeat(" ", 14) + "&#x20;&#9;",
		"&#65;&#xD800;&#99999999999999999999;x": "&#65;" + strings.Repeat(" ", 8+23) + "x",
		"\ufffe\uffff\u00e9\xff":                "      \u00e9 ", "&#;&#x;&#1 &amp;": "&#;&#x;&#1 &amp;",
	} {
		got := string(Repair([]byte(text)))
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	text := []byte("nothing to do")
	if repaired := Repair(text); &repaired[0] != &text[0] {
		t.Error("a document without mistakes was copied")
	}
}

func TestStart(t *testing.T) {
	const feed = "<rss><channel/></rss>"
	for text, want := range map[string]int{
		feed: 0, " \n<!-- <?xml -->" + feed: 0, "Warning: x\n" + feed: 11, "<br /><?xml version='1.0'?>" + feed: 6,
		"<rss>&<![CDATA[<?xml ]]></rss>": 0, "<html><?xml ?>" + feed: -1, "<soap>" + feed: -1, "text": -1, "": -1, "\x01" + feed: 1,
	} {
		if got := Start([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

func TestCountTags(t *testing.T) {
	const text = "<item><ITEM a><a:item\n>< item><items></item></a:ITEM ></items><<item/><item"
	for name, want := range map[string]int{"item": 4, "/item": 2, "items": 1, "/items": 1, "entry": 0} {
		if got := CountTags([]byte(text), name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}
