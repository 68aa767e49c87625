// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/markup"
)

// numbered repeats a text with a number in it.
func numbered(format string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// Hostile documents cost memory in proportion to their size.
func TestBombs(t *testing.T) {
	repeat := func(unit string, size int) string { return strings.Repeat(unit, size/len(unit)+1) }
	const size = 1 << 19
	item := func(text string) string { return rssOpen + "<item>" + text + "</item>" + rssClose }
	description := func(text string) string { return item("<description>" + text + "</description>") }
	for name, body := range map[string]string{
		"nested elements":           item(repeat("<x>", size)),
		"different namespaces":      rssOpen + repeat(`<x xmlns="a"/><y xmlns="b"/>`, size) + rssClose,
		"end tags of nothing":       rssOpen + strings.Repeat("<y>", markup.MaxDepth-10) + repeat("</x>", size),
		"attributes":                item("<x " + repeat(`a="b" `, size) + "/>"),
		"attributes without quotes": item("<x " + repeat(`a=`, size)),
		"an attribute without end":  item(`<x a="` + repeat("<x>", size)),
		"bases":                     rssOpen + strings.Repeat(`<x xml:base="a/">`, markup.MaxDepth-10) + repeat(`<x xml:base="b"/>`, size),
		"different bases":           rssOpen + strings.Repeat(`<x xml:base="a/">`, markup.MaxDepth-10) + numbered(`<x xml:base="%d"/>`, size),
		"a long base":               rssOpen + `<x xml:base="` + repeat("a/", size) + `"><link>x</link>`,
		"pieces":                    item("<link>" + repeat("<![CDATA[x]]>", size) + "</link>"),
		"pieces of HTML":            description("&lt;a href='" + repeat("<![CDATA[x]]>", size)),
		"unclosed CDATA":            item(repeat("<![CDATA[", size)),
		"document types":            repeat("<!DOCTYPE x [", size),
		"tags in HTML":              description(repeat("&lt;a ", size)),
		"scripts":                   description(repeat("&lt;script&gt;", size)),
		"ends of scripts":           description("&lt;script&gt;" + repeat("&lt;/", size)),
		"comments in HTML":          description(repeat("&lt;!--", size)),
		"references to the reader":  description(repeat("&lt;a href=x&gt;", size)),
		"candidates":                description("&lt;img srcset='" + repeat("a,b ", size) + "'&gt;"),
		"commas":                    description("&lt;img srcset='" + repeat(",", size) + "'&gt;"),
		"descriptors":               description("&lt;img srcset='a " + repeat("(", size) + "'&gt;"),
		"dots":                      item("<link>" + repeat("../", size) + "</link>"),
		"ampersands":                description(repeat("&", size)),
		"nested arrays":             jsonOpen + `"items": ` + repeat("[", size),
		"members":                   jsonOpen + repeat(`"icon": "x", `, size),
		"escapes":                   jsonOpen + `"icon": "` + repeat(`\u0061`, size) + `"}`,
		"hubs":                      jsonOpen + repeat(`"hubs": [],`, size) + `"a": 1}`,
		"links to hubs":             atomOpen + repeat(`<link rel="hub"/>`, size) + atomClose,
		"relations":                 atomOpen + `<link rel="` + repeat(`hub self `, size) + `" href=""/>` + atomClose,
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(body)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			result, _ := Served(text, "", from, false)
			runtime.ReadMemStats(&after)
			if len(result) > 2*len(text)+spareGrowth {
				t.Errorf("%d bytes have become %d", len(text), len(result))
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > uint64(128*len(text)+1<<20) {
				t.Errorf("%d bytes allocated for a document of %d", allocated, len(text))
			}
		})
	}
}
