// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mmcdole/gofeed"
	_ "modernc.org/sqlite"

	"github.com/feedpollard/pollard/internal/origintest"
)

// mutations are what happens to documents in the field.
var mutations = map[string]func(string) string{
	"whole":                  func(s string) string { return s },
	"white space around":     func(s string) string { return "\n\n " + s + "\n\n" },
	"byte order marks":       func(s string) string { return "\ufeff\ufeff" + s },
	"warning in front":       func(s string) string { return "<br />\n<b>Warning</b>: x in y on line 3<br />\n" + s },
	"text in front":          func(s string) string { return "Notice: Undefined index\n" + s },
	"script in front":        func(s string) string { return "<script>if (1 < 2) {}</script>\n" + s },
	"comment in front":       func(s string) string { return "<!-- cached -->\n" + s },
	"script behind":          func(s string) string { return s + "\n<script async src=\"https://a.test/x.js\"></script>" },
	"page behind":            func(s string) string { return s + "<!DOCTYPE html><html><body>x</body></html>" },
	"text behind":            func(s string) string { return s + "Warning: Cannot modify header information" },
	"comment behind":         func(s string) string { return s + "<!-- 0.2 s -- 31 queries -->" },
	"document behind":        func(s string) string { return s + s },
	"NUL behind":             func(s string) string { return s + "\x00\x00" },
	"mark after declaration": replaced("?><", "?>\ufeff<"),
	"style sheet":            replaced("?><", "?><?xml-stylesheet href=\"/x.xsl\"?><"),
	"document type":          replaced("?><", "?><!DOCTYPE rss [<!ENTITY eacute \"&#233;\">]><"),
	"bare ampersand":         replaced("some words", "AT&T & more"),
	"unknown entity":         replaced("some words", "&shy;&unknown; more"),
	"bare less-than sign":    replaced("some words", "1 < 2"),
	"control characters":     replaced("some words", "\x01\x0b\x1f more"),
	"forbidden reference":    replaced("some words", "&#0;&#11; more"),
	"invalid UTF-8":          replaced("some words", "caf\xe9"),
	"attribute unquoted":     replaced("<guid>", "<guid isPermaLink=true>"),
	"unclosed element":       replaced("some words", "<br>some"),
	"crossed elements":       replaced("some words", "<b><i>some</b></i>"),
	"stray end tag":          replaced("some words", "some</p>"),
	"stray end tag of feed":  replaced("<link", "</div><link"),
	"misspelt end tag":       replaced("</title>", "</tilte>"),
	"no end of a title":      func(s string) string { return strings.Replace(s, "4</title>", "4", 1) },
	"no end of an item":      replaced("</item>", ""),
	"no end of an entry":     replaced("</entry>", ""),
	"comment with hyphens":   replaced("<link", "<!-- a -- b --><link"),
	"conflict marker":        replaced("<link", "<<<<<<< HEAD\n<link"),
	"root in capitals":       func(s string) string { return strings.Replace(s, "</rss>", "</RSS>", 1) },
	"no end of the root":     cutBefore("</rss>", "</feed>"),
	"no end of the channel":  cutBefore("</channel>", "</feed>"),
	"no end of the JSON":     cutBefore("]}", "]}"),
	"cut in the last item":   cutBefore("Entry 1", "Entry 1"),
	"cut in the middle":      func(s string) string { return s[:len(s)/2] },
	"cut behind an item":     cutBefore("<item><title>Entry 2", "<entry><title>Entry 2"),
	"cut in front of items":  cutBefore("<item><title>Entry 4", "<entry><title>Entry 4"),
	"cut in a tag":           cutBefore("uid>", "itle><link href=\"https://origin.test/1"),
	"nothing":                func(string) string { return " " },
}

func replaced(old, new string) func(string) string {
	return func(s string) string { return strings.Replace(s, old, new, 1) }
}

// cutBefore ends a document in front of the last occurrence of one of two texts.
func cutBefore(rss, atom string) func(string) string {
	return func(s string) string {
		if i := max(strings.LastIndex(s, rss), strings.LastIndex(s, atom)); i >= 0 {
			return s[:i]
		}
		return s
	}
}

// fieldCase is a document with what becomes of it at a gateway.
type fieldCase struct {
	name           string
	direct, served string // what a reader gets from the site, and from the gateway after two polls
}

// fieldCases polls a feed, and then twice a document with a new entry or without entries.
func fieldCases(t *testing.T) (cases []fieldCase) {
	for _, format := range []origintest.Format{origintest.RSS, origintest.Atom, origintest.JSONFeed} {
		for _, entries := range []int{4, 0} {
			whole := origintest.Document{Format: format, Entries: entries}.String()
			for _, name := range slices.Sorted(maps.Keys(mutations)) {
				direct := mutations[name](whole)
				if name != "whole" && direct == whole {
					continue // it does not occur in this format
				}
				name = fmt.Sprintf("%s, format %d with %d entries", name, format, entries)
				l := newLife(t)
				l.poll(given(origintest.Document{Format: format, Entries: 3}.String()))
				before := string(l.body)
				for range 3 { // the connection breaks off: no answer counts that has lost its end
					if l.poll(brokenOff(direct)); string(l.body) != before && (l.state.Feed.Version.Entries < 3 || !strings.Contains(string(l.body), "Entry 1")) && entries > 0 {
						t.Errorf("%s: what broke off has replaced a version with more entries", name)
					}
				}
				l = newLife(t)
				l.poll(given(origintest.Document{Format: format, Entries: 3}.String()))
				for range 2 {
					l.poll(given(direct))
				}
				cases = append(cases, fieldCase{name, direct, string(l.body)})
			}
		}
	}
	return cases
}

// What newsboat, feedparser, gofeed or Go's lenient decoder shows of a document, it shows of what a
// gateway makes of it, at the second poll in a row at the latest.
func TestWhatReadersShowIsAVersion(t *testing.T) {
	cases := fieldCases(t)
	documents := make([]string, 0, 2*len(cases))
	for _, c := range cases {
		documents = append(documents, c.direct, c.served)
	}
	for name, titles := range map[string]func(*testing.T, []string) [][]string{
		"gofeed": gofeedTitles, "encoding/xml": lenientTitles, "feedparser": feedparserTitles, "newsboat": newsboatTitles,
	} {
		t.Run(name, func(t *testing.T) {
			shown, new := titles(t, documents), 0
			for i, c := range cases {
				direct, through := shown[2*i], shown[2*i+1]
				for _, title := range direct {
					if !slices.Contains(through, title) {
						t.Errorf("%s: it shows %q from the site, and through the gateway only %q", c.name, title, through)
					}
				}
				if slices.ContainsFunc(direct, func(title string) bool { return strings.Contains(title, "Entry 4") }) {
					new++
				}
			}
			if new < 30 {
				t.Errorf("it shows the new entry of %d documents only: nothing is compared", new)
			}
		})
	}
}

func gofeedTitles(_ *testing.T, documents []string) (titles [][]string) {
	for _, d := range documents {
		var list []string
		if feed, err := gofeed.NewParser().ParseString(d); err == nil {
			for _, item := range feed.Items {
				list = append(list, item.Title)
			}
		}
		titles = append(titles, list)
	}
	return titles
}

// lenientTitles reads as Miniflux does: encoding/xml without strictness, and without forbidden characters.
func lenientTitles(_ *testing.T, documents []string) (titles [][]string) {
	for _, d := range documents {
		if !utf8.ValidString(d) {
			d = strings.ToValidUTF8(d, "")
		}
		d = strings.Map(func(r rune) rune {
			if r < ' ' && !strings.ContainsRune("\t\r\n", r) {
				return -1
			}
			return r
		}, d)
		decoder := xml.NewDecoder(strings.NewReader(d))
		decoder.Strict, decoder.Entity = false, xml.HTMLEntity
		decoder.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
		var feed struct {
			Items []struct {
				Title []string `xml:"title"`
			} `xml:"channel>item"`
			Entries []struct {
				Title []string `xml:"title"`
			} `xml:"entry"`
		}
		var list []string
		if decoder.Decode(&feed) == nil {
			for _, item := range append(feed.Items, feed.Entries...) {
				list = append(list, item.Title...)
			}
		}
		titles = append(titles, list)
	}
	return titles
}

const feedparserScript = `
import sys, json, warnings
warnings.filterwarnings("ignore")
import feedparser
print(json.dumps([[e.get("title", "") for e in feedparser.parse(d.encode("utf-8", "surrogateescape"), response_headers={"content-type": "application/xml"}).entries]
  for d in json.load(sys.stdin)]))
`

func feedparserTitles(t *testing.T, documents []string) (titles [][]string) {
	python := ""
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.Command(name, "-c", "import feedparser").Run() == nil {
			python = name
		}
	}
	if python == "" {
		t.Skip("needs python3-feedparser")
	}
	for i, d := range documents { // JSON has no other bytes than UTF-8
		documents[i] = strings.ToValidUTF8(d, "?")
	}
	in, err := json.Marshal(documents)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, "-c", feedparserScript)
	command.Stdin, command.Stderr = bytes.NewReader(in), os.Stderr
	out, err := command.Output()
	if err == nil {
		err = json.Unmarshal(out, &titles)
	}
	if err != nil || len(titles) != len(documents) {
		t.Fatal(err)
	}
	return titles
}

func newsboatTitles(t *testing.T, documents []string) [][]string {
	program, err := exec.LookPath("newsboat")
	if err != nil {
		t.Skip("needs newsboat")
	}
	dir, urls := t.TempDir(), ""
	host := func(i int) string { return fmt.Sprintf("o%05d.test", i) } // to newsboat, entries of two feeds with one ID are one
	for i, d := range documents {
		d = strings.ReplaceAll(d, "origin.test", host(i))
		name := filepath.Join(dir, fmt.Sprint(i, ".xml"))
		if err := os.WriteFile(name, []byte(d), 0o600); err != nil {
			t.Fatal(err)
		}
		urls += "file://" + name + "\n"
	}
	files := map[string]string{"urls": urls, "config": "reload-threads 4\n"}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cache := filepath.Join(dir, "cache.db")
	command := exec.Command(program, "-q", "-u", filepath.Join(dir, "urls"), "-C", filepath.Join(dir, "config"), "-c", cache, "-x", "reload")
	command.Env = append(os.Environ(), "HOME="+dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("newsboat: %v\n%s", err, out)
	}
	db, err := sql.Open("sqlite", cache)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.Query("SELECT feedurl, title FROM rss_item WHERE guid LIKE '%.test/%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	titles := make([][]string, len(documents))
	for rows.Next() {
		var url, title string
		if err := rows.Scan(&url, &title); err != nil {
			t.Fatal(err)
		}
		var i int
		if _, err := fmt.Sscanf(filepath.Base(url), "%d.xml", &i); err != nil {
			t.Fatal(err)
		}
		titles[i] = append(titles[i], strings.ReplaceAll(title, host(i), "origin.test"))
	}
	return titles
}
