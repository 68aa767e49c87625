// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package opml reads and changes the feed URLs of subscription lists: OPML 1.0 and
// 2.0 (opml.org/spec2.opml), and the variants that feed readers export.
//
// [Rewrite] replaces them and nothing else: every byte outside of a changed xmlUrl value
// stays as it is, so folders, comments and the private attributes of a reader survive. A list
// in another encoding becomes UTF-8, which all readers read.
//
// [Outlines] reads them with their folders and titles, for a list that [New] writes. Neither judges URLs.
package opml

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
)

// MaxSize is the largest document accepted and returned, in bytes.
const MaxSize = 16 << 20

// Rewrite returns the document with each feed URL replaced by the result of change, and
// the number of outlines changed. A URL for which change returns the same text stays byte
// for byte. The first error of change ends the rewriting.
func Rewrite(in []byte, change func(url string) (string, error)) (out []byte, changed int, err error) {
	text, outlines, err := read(in)
	if err != nil {
		return nil, 0, err
	}
	var b bytes.Buffer
	copied := 0
	if !bytes.Equal(text, in) || !strings.EqualFold(markup.Declared(in), "utf-8") {
		copied = markup.Begin(text) // after the declaration of another encoding
		b.WriteString(xml.Header)
	}
	for _, o := range outlines {
		if o.URL == "" {
			continue
		}
		changedURL, err := change(o.URL)
		if err != nil {
			return nil, 0, err
		}
		if changedURL == o.URL {
			continue
		}
		b.Write(text[copied:o.place.Start])
		b.WriteString(escape(changedURL))
		if b.Len()+len(text)-o.place.End > MaxSize {
			return nil, 0, fmt.Errorf("the rewritten list would be larger than %d MiB", MaxSize>>20)
		}
		copied = o.place.End
		changed++
	}
	if changed == 0 {
		return bytes.Clone(in), 0, nil
	}
	b.Write(text[copied:])
	return b.Bytes(), changed, nil
}

// escape converts a text to an attribute value.
func escape(s string) string {
	var b strings.Builder
	for _, r := range html.EscapeString(s) {
		if r < ' ' {
			fmt.Fprintf(&b, "&#%d;", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}
