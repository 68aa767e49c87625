// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/markup"
)

func repeat(unit string, n int) string { return strings.Repeat(unit, n) }

// numbered joins n pieces made with a number.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// atomBase opens a feed whose base is so long.
func atomBase(length int) string {
	return `<feed xmlns="http://www.w3.org/2005/Atom" xml:base="http://x/` + repeat("a/", length/2) + `">`
}

// Documents made to exhaust their reader: each is given up, or read, with little
// memory. Deep ones have killed whole processes that parsed by recursion.
func TestBombs(t *testing.T) {
	const jsonOpen = `{"version":"https://jsonfeed.org/version/1",`
	tests := []struct {
		name, body string
		kind       error // nil: read as a feed
	}{
		{"a million nested extensions", rssOpen + repeat("<media:x>", 1_000_000), ErrTooComplex},
		{"deep, but not too deep", rssOpen + repeat("<x>", 200) + repeat("</x>", 200) + rssClose, nil},
		{"namespaces on the channel", strings.Replace(rssOpen, "<channel", "<channel"+numbered(` xmlns:n%d="urn:%[1]d"`, 4000), 1) + repeat("<x/>", 4000) + rssClose, ErrTooComplex},
		{"namespaces on nested elements", rssOpen + numbered(`<x xmlns:n%d="urn:%[1]d">`, 250), ErrTooComplex},
		{"namespaces on many elements", rssOpen + numbered(`<item xmlns:n%d="urn:%[1]d"/>`, 5000) + rssClose, nil},
		{"attributes", rssOpen + "<x" + numbered(` a%d="="`, 100_000) + "/>" + rssClose, ErrTooComplex},
		{"attributes without values", rssOpen + "&<x" + repeat(" a", 100_000) + "/>" + rssClose, ErrTooComplex},
		{"a long tag with few attributes", rssOpen + `<x a="` + repeat("b = c ", 100_000) + `"/>` + rssClose, nil},
		{"elements", rssOpen + repeat("<x/>", markup.MaxElements) + rssClose, ErrTooComplex},
		{"CDATA sections", rssOpen + "<media:x>" + repeat("<![CDATA[x]]>", 100_000) + "</media:x>" + rssClose, nil},
		{"comments in a title", rssOpen + "<item><title>" + repeat("x<!---->", 100_000) + "</title></item>" + rssClose, nil},
		{"ampersands", rssOpen + "<item><title>" + repeat("&", 1_000_000) + "</title></item>" + rssClose, nil},
		{"an entity of 100 kB, 100,000 times", `<!DOCTYPE rss [<!ENTITY a "` + repeat("x", 100_000) + `">]>` + rssOpen + "<item><title>" + repeat("&a;", 100_000) + "</title></item>" + rssClose, nil},
		{"entities of entities", `<!DOCTYPE rss [<!ENTITY a "x">` + numbered(`<!ENTITY a%d "&a;&a;&a;&a;&a;&a;&a;&a;">`, 100) + `]>` + rssOpen + "<title>&a99;</title>" + rssClose, nil},
		{"a file as an entity", `<!DOCTYPE rss [<!ENTITY a SYSTEM "file:///etc/passwd">]>` + rssOpen + "<title>&a;</title>" + rssClose, nil},
		{"hours", rssOpen + "<skipHours>" + repeat("<hour>3</hour><hour>x</hour>", 50_000) + "</skipHours>" + rssClose, nil},
		{"hubs", rssOpen + numbered(`<atom:link rel="hub" href="https://h%d.example.org/"/>`, 50_000) + rssClose, nil},
		{"relations", rssOpen + `<atom:link rel="` + repeat("hub ", 500_000) + `" href="x"/>` + rssClose, nil},
		{"bases within a long one", atomBase(20_000) + repeat(`<x xml:base="b"/>`, 5000) + "</feed>", nil},
		{"links within a long base", atomBase(20_000) + repeat(`<link rel="self" href="b"/>`, 5000) + "</feed>", nil},
		{"hubs within a base that is not too long", atomBase(2000) + repeat(`<link rel="hub" href="b"/>`, 100_000) + "</feed>", nil},
		{"bases of channels", `<rss xml:base="http://x/` + repeat("a/", 10_000) + `">` + repeat(`<channel xml:base="b"/>`, 5000) + "</rss>", nil},
		{"a guid of a megabyte", rssOpen + "<item><guid>" + repeat("x", 1<<20) + "</guid></item>" + rssClose, nil},
		{"small items", rssOpen + numbered("<item><guid>%d</guid></item>", 100_000) + rssClose, nil},
		{"blank lines", repeat("\n", 5<<20) + rssSample, nil},
		{"nested items", jsonOpen + `"items":` + repeat("[", 1_000_000), ErrTooComplex},
		{"nested arrays for a hub", jsonOpen + `"hubs":[` + repeat("[", 1_000_000), ErrTooComplex},
		{"null items", jsonOpen + `"items":[` + repeat("null,", 500_000) + `null]}`, nil},
		{"items without end", jsonOpen + `"items":[` + repeat("1,", markup.MaxElements) + `1]}`, ErrTooComplex},
		{"members", jsonOpen + numbered(`"%d":1,`, markup.MaxElements) + `"b":1}`, ErrTooComplex},
		{"one member, many times", jsonOpen + repeat(`"a":1,`, markup.MaxElements) + `"b":1}`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			body := []byte(test.body)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			doc, err := Read(body, "", now)
			runtime.ReadMemStats(&after)
			if !errors.Is(err, test.kind) {
				t.Fatalf("got %+v, %v; want %v", doc, err, test.kind)
			}
			// All that was allocated, not what was held: 256 bytes for each of
			// the document, and something for a start.
			if allocated, limit := after.TotalAlloc-before.TotalAlloc, uint64(256*len(body)+10<<20); allocated > limit {
				t.Errorf("%d bytes allocated for a document of %d", allocated, len(body))
			}
		})
	}
}
