// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package opml

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/feedpollard/pollard/internal/markup"
)

const base = "https://feeds.example/~a&b'c/"

func through(url string) (string, error) {
	if !strings.HasPrefix(url, "http") {
		return url, nil
	}
	return base + url, nil
}

func direct(url string) (string, error) { return strings.TrimPrefix(url, base), nil }

// urls returns the URLs of the feeds in a list.
func urls(in []byte) ([]string, error) {
	all, err := Outlines(in)
	found := []string{}
	Pruned(all, func(feed *Outline) bool { found = append(found, feed.URL); return true })
	return found, err
}

func TestURLs(t *testing.T) {
	tests := []struct {
		name, opml string
		want       []string
	}{
		{"flat", `<opml version="2.0"><body><outline type="rss" text="A" xmlUrl="https://a.example/f"/></body></opml>`,
			[]string{"https://a.example/f"}},
		{"nested", `<opml><body><outline text="d"><outline text="d"><outline xmlUrl="https://a.example/f"/></outline></outline><outline xmlUrl='http://b.example/?x=1&amp;y=2'/></body></opml>`,
			[]string{"https://a.example/f", "http://b.example/?x=1&y=2"}},
		{"names in any case, a bare &, references", `<OPML><BODY><OUTLINE text="caf&eacute;&nbsp;" xmlurl = " https://a.example/?x=1&y=2&copy=3&#38;z=&#x22; "></BODY></OPML>`,
			[]string{`https://a.example/?x=1&y=2&copy=3&z="`}},
		{"not in comments, CDATA, instructions or declarations", `<!DOCTYPE opml [<!ENTITY e '<outline xmlUrl="http://e/"/>'>]><opml><!-- <outline xmlUrl="http://c/"/> --><![CDATA[<outline xmlUrl="http://d/"/>]]><?p <outline xmlUrl="http://p/"/>?></opml>`,
			[]string{}},
		{"not in another attribute", `<opml><outline text='xmlUrl="http://a/"' title="a > b, xmlUrl='http://b/'" htmlUrl="http://c/" xmlUrl="http://d/"/></opml>`,
			[]string{"http://d/"}},
		{"the first of two", `<opml><outline xmlUrl="http://a/" xmlUrl="http://b/"/></opml>`, []string{"http://a/"}},
		{"a value on several lines", "<opml><outline\n\txmlUrl\n=\n\t\"\n http://a/\n\"\n/></opml>", []string{"http://a/"}},
		{"ISO-8859-1", "<?xml version='1.0' encoding='ISO-8859-1'?><opml><outline text='\xe9' xmlUrl='http://a/\xe9'/></opml>", []string{"http://a/é"}},
		{"references to nothing", "<opml><outline text='&#27;&x;' xmlUrl='http://a/&x;'/><outline xmlUrl='http://b/&#27;'/></opml>", []string{"http://a/&x;", "http://b/"}},
		{"bytes of characters that are those of markup", "<?xml version='1.0' encoding='ISO-2022-JP'?><opml><outline text='\x1b$B<\"'>\x1b(B' xmlUrl='http://a/'/></opml>", []string{"http://a/"}},
		{"a folder with an empty URL", `<opml><outline xmlUrl=""><outline xmlUrl="http://a/"/></outline></opml>`, []string{"http://a/"}},
		{"elements that are not closed", `<opml><body><outline><outline xmlUrl="http://a/"></body></opml>`, []string{"http://a/"}},
		{"empty", `<opml/>`, []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := urls([]byte(tt.opml))
			if err != nil || !slices.Equal(got, tt.want) {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestURLsRefuses(t *testing.T) {
	tests := []struct{ name, text string }{
		{"nothing", ""},
		{"a feed", `<rss version="2.0"><channel/></rss>`},
		{"HTML", `<!DOCTYPE html><html><body></body></html>`},
		{"half of a list", `<opml><body><outline xmlUrl="http://a/"`},
		{"a deep one", `<opml>` + strings.Repeat("<outline>", markup.MaxDepth) + `</opml>`},
		{"a large one", `<opml>` + strings.Repeat(" ", MaxSize) + `</opml>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := urls([]byte(tt.text)); !errors.Is(err, ErrInvalid) {
				t.Errorf("got %v, want that it is not OPML", err)
			}
		})
	}
}

// Exports in the shape of several readers go through a gateway and come back: there
// nothing but the URLs of feeds is different, back every byte is as it was. A list in UTF-16
// comes back in UTF-8.
func TestRewriteThereAndBack(t *testing.T) {
	feeds := map[string]int{"miniflux": 2, "freshrss": 2, "newsboat": 2, "liferea": 1, "gpodder": 2}
	files, err := filepath.Glob("testdata/*.opml")
	if err != nil || len(files) != len(feeds) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		reader := strings.TrimSuffix(filepath.Base(file), ".opml")
		in, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, encoded := range []struct {
			name     string
			in, back []byte
		}{
			{"", in, in},
			{" with a byte order mark", append([]byte("\ufeff"), in...), append([]byte("\ufeff"), in...)},
			{" in UTF-16", utf16(t, in), append([]byte(xml.Header), in[markup.Begin(in):]...)},
		} {
			t.Run(reader+encoded.name, func(t *testing.T) {
				there, changed, err := Rewrite(encoded.in, through)
				if err != nil || changed != feeds[reader] {
					t.Fatalf("%d changed, %v; want %d", changed, err, feeds[reader])
				}
				before, _ := urls(encoded.in)
				after, err := urls(there)
				if err != nil || len(after) != len(before) {
					t.Fatalf("%q, %v", after, err)
				}
				for i, url := range before {
					if want, _ := through(url); after[i] != want {
						t.Errorf("%q became %q, want %q", url, after[i], want)
					}
				}
				back, changed, err := Rewrite(there, direct)
				if err != nil || changed != feeds[reader] || !bytes.Equal(back, encoded.back) {
					t.Errorf("%d changed back, %v:\n%s\nwant\n%s", changed, err, back, encoded.back)
				}
			})
		}
	}
}

// Lists that are odd go through a gateway and come back as they were. Only a URL that was not
// written as we write it is another text, with the same meaning.
func TestOddListsThereAndBack(t *testing.T) {
	const feed, other = `<outline type="rss" text="A" xmlUrl="https://a.example/f"/>`, `<outline text="B" xmlUrl="http://b.example/?x=1&amp;y=2"/>`
	tests := []struct {
		name, list string
		feeds      int
		back       string // empty: as the list
	}{
		{"no head", `<opml version="1.0"><body>` + feed + `</body></opml>`, 1, ""},
		{"no body", `<opml>` + feed + other + `</opml>`, 2, ""},
		{"two bodies", `<opml><body>` + feed + `</body><body>` + other + `</body></opml>`, 2, ""},
		{"feeds in the head", `<opml><head>` + feed + `</head><body>` + other + `</body></opml>`, 2, ""},
		{"lines of Windows", "<?xml version=\"1.0\"?>\r\n<opml>\r\n\t" + feed + "\r\n</opml>\r\n", 1, ""},
		{"blank lines before the declaration", "\n \n<?xml version=\"1.0\"?><opml>" + feed + "</opml>", 1, ""},
		{"text behind the end", `<opml>` + feed + "</opml>\n<!-- made in 0.1 s -->\nbye\n", 1, ""},
		{"a body that is not closed", `<opml><head/><body>` + feed + `</opml>`, 1, ""},
		{"folders that are not closed", `<opml><outline text="a"><outline text="b">` + feed + `</outline></opml>`, 1, ""},
		{"a folder that is a feed too", `<opml><outline text="a" xmlUrl="https://a.example/">` + feed + `</outline></opml>`, 2, ""},
		{"single quotes", `<opml><outline text='"A"' xmlUrl='https://a.example/f'/></opml>`, 1, ""},
		{"names in capitals", `<OPML><OUTLINE TEXT="A" XMLURL="https://a.example/f"></OUTLINE></OPML>`, 1, ""},
		{"a namespace", `<opml xmlns="http://opml.org/spec2"><body>` + feed + `</body></opml>`, 1, ""},
		{"attributes of a reader", `<opml xmlns:f="https://r.example/"><outline f:xmlUrl2="x" f:css=".a > b" xmlUrl="https://a.example/f" f:seen="1"/></opml>`, 1, ""},
		{"a document type", `<!DOCTYPE opml SYSTEM "opml.dtd"><opml>` + feed + `</opml>`, 1, ""},
		{"a stylesheet", `<?xml version="1.0"?><?xml-stylesheet href="a.xsl"?><opml>` + feed + `</opml>`, 1, ""},
		{"a bare &", `<opml><outline text="A & B" xmlUrl="https://a.example/f"/></opml>`, 1, ""},
		{"a control character", "<opml><outline text=\"A\vB\" xmlUrl=\"https://a.example/f\"/></opml>", 1, ""},
		{"a feed twice", `<opml>` + feed + feed + `</opml>`, 2, ""},
		{"URLs of other kinds", `<opml><outline xmlUrl="file:///a"/><outline xmlUrl=""/><outline xmlUrl="exec:x"/>` + feed + `</opml>`, 1, ""},
		{"pages that a reader reads itself", `<opml><outline type="HTML+XPath" xmlUrl="https://p.example/"/>` + feed + `</opml>`, 1, ""},
		{"letters beyond ASCII", `<opml><outline text="Übung" xmlUrl="https://ü.example/é?q=日本"/></opml>`, 1, ""},
		{"a URL in a URL", `<opml><outline xmlUrl="https://a.example/?u=https://b.example/f&amp;n=1#top"/></opml>`, 1, ""},
		{"a bare & in a URL", `<opml><outline xmlUrl="https://a.example/?x=1&y=2"/></opml>`, 1, `<opml><outline xmlUrl="https://a.example/?x=1&amp;y=2"/></opml>`},
		{"blanks around a URL", "<opml><outline xmlUrl=\"\n https://a.example/f \"/></opml>", 1, `<opml><outline xmlUrl="https://a.example/f"/></opml>`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			there, changed, err := Rewrite([]byte(tt.list), through)
			if err != nil || changed != tt.feeds {
				t.Fatalf("%d changed, %v; want %d", changed, err, tt.feeds)
			}
			if n := strings.Count(string(there), escape(base)); n != tt.feeds {
				t.Errorf("%d URLs lead through the gateway, want %d:\n%s", n, tt.feeds, there)
			}
			back, changed, err := Rewrite(there, direct)
			if want := cmp.Or(tt.back, tt.list); err != nil || changed != tt.feeds || string(back) != want {
				t.Errorf("%d changed back, %v:\n%s\nwant\n%s", changed, err, back, want)
			}
		})
	}
}

func utf16(t *testing.T, text []byte) []byte {
	t.Helper()
	out, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRewriteChangesNothingElse(t *testing.T) {
	const list = "\r\n<!-- \u20ac <outline xmlUrl='no'/> -->\n<opml  version = \"2.0\" >" +
		"<outline\ttext='\u2122 &amp;&lt;\n' xmlUrl=\"\thttp://a.example/&#63;x=1&amp;y \" z:q='\u00ff' ></outline ><outline xmlUrl='file:///a'/></opml>\n<!-- end -->"
	const other, header = "<?xml version='1.0' encoding='windows-1252'?>", "<?xml version='1.0'?>"
	windows, err := charmap.Windows1252.NewEncoder().String(list)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(list, "\thttp://a.example/&#63;x=1&amp;y ", "http://b/&lt;&amp;&#34;&#39;&gt;é&#10;", 1)
	for in, want := range map[string]string{header + list: header + want, other + windows: xml.Header + want} {
		out, changed, err := Rewrite([]byte(in), func(url string) (string, error) {
			if url == "http://a.example/?x=1&y" {
				return "http://b/<&\"'>é\n", nil
			}
			return url, nil
		})
		if err != nil || changed != 1 || string(out) != want {
			t.Errorf("%d changed, %v:\n%q\nwant\n%q", changed, err, out, want)
		}
	}
}

func TestRewriteEndsAtAnError(t *testing.T) {
	cause := errors.New("no such gateway")
	calls := 0
	out, changed, err := Rewrite([]byte(`<opml><outline xmlUrl="a"/><outline xmlUrl="b"/></opml>`), func(string) (string, error) {
		calls++
		return "", cause
	})
	if !errors.Is(err, cause) || out != nil || changed != 0 || calls != 1 {
		t.Errorf("%q, %d changed, %d calls, %v", out, changed, calls, err)
	}
}

func FuzzRewrite(f *testing.F) {
	files, err := filepath.Glob("testdata/*.opml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(in)
	}
	f.Add([]byte("\xff\xfe<\x00"))
	f.Add([]byte("<?xml version='1.0' encoding='gbk'?><opml><outline xmlUrl='\xc4\xe3'/></outline></opml>"))
	f.Fuzz(func(t *testing.T, in []byte) {
		before, err := urls(in)
		if err != nil {
			return
		}
		mark := func(url string) (string, error) { return "http://g/" + url, nil }
		there, changed, err := Rewrite(in, mark)
		if err != nil || changed != len(before) {
			t.Fatalf("%d of %d changed, %v", changed, len(before), err)
		}
		after, err := urls(there)
		if err != nil || len(after) != len(before) {
			t.Fatalf("%q became %q, %v", before, after, err)
		}
		for i := range before {
			if after[i] != "http://g/"+before[i] {
				t.Errorf("%q became %q", before[i], after[i])
			}
		}
	})
}

// A list grows with the address of a gateway only up to a bound.
func TestRewrittenListIsBounded(t *testing.T) {
	list := []byte("<opml><body>" + strings.Repeat(`<outline xmlUrl="http://a/"/>`, 100_000) + "</body></opml>")
	prefix := "http://" + strings.Repeat("x", 240) + "/"
	_, _, err := Rewrite(list, func(url string) (string, error) { return prefix + url, nil })
	if err == nil || !strings.Contains(err.Error(), "larger than 16 MiB") {
		t.Error(err)
	}
}
