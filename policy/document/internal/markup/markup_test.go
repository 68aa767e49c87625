// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package markup

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

// The number of tokens bounds the time, not a clock: a reader stops at
// a limit instead of going on to the end.
func TestScannerStopsAtItsLimits(t *testing.T) {
	tests := []struct {
		name, body string
		within     int // bytes
	}{
		{"depth", strings.Repeat("<x>", 100_000), 3 * (MaxDepth + 1)},
		{"attributes", "<x" + strings.Repeat(` a=""`, 100_000) + ">", 0},
		{"namespaces", numbered(`<x xmlns:n%d="urn:x">`, 10_000), 30 * (maxNamespaces + 1)},
		{"elements", "<x>" + strings.Repeat("<x/>", MaxElements+100_000), 4*MaxElements + 3},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := NewScanner([]byte(test.body), false)
			for {
				_, err := s.Next()
				if errors.Is(err, ErrTooComplex) {
					break
				}
				if err == io.EOF || err != nil {
					t.Fatalf("%v instead of a limit", err)
				}
			}
			if s.Offset() > test.within {
				t.Errorf("stopped after %d bytes, want at most %d", s.Offset(), test.within)
			}
		})
	}
}

// numbered joins n pieces made with a number.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

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
		start, end := s.Span()
		got = append(got, text[start:end])
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
