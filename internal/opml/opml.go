// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package opml reads and changes the feed URLs of subscription lists: OPML 1.0 and
// 2.0 (opml.org/spec2.opml), and the variants that feed readers export.
//
// [URLs] lists them. [Rewrite] replaces them and nothing else: every byte outside of
// a changed xmlUrl value stays as it is, in the document's own encoding, so folders,
// comments and the private attributes of a reader survive.
//
// It does not build documents, and it does not judge URLs.
package opml

import (
	"bytes"
	"fmt"
	"strings"
)

// MaxSize is the largest document accepted and returned, in bytes.
const MaxSize = 16 << 20

// URLs returns the feed URLs in the order of the document, without white space
// around them. Folders, links and pages that a reader scrapes have none.
func URLs(in []byte) ([]string, error) {
	_, outlines, err := read(in)
	if err != nil {
		return nil, err
	}
	urls := make([]string, len(outlines))
	for i, o := range outlines {
		urls[i] = o.url
	}
	return urls, nil
}

// Rewrite returns the document with each feed URL replaced by the result of change, and
// the number of outlines changed. A URL for which change returns the same text stays byte
// for byte. The first error of change ends the rewriting.
func Rewrite(in []byte, change func(url string) (string, error)) (out []byte, changed int, err error) {
	doc, outlines, err := read(in)
	if err != nil {
		return nil, 0, err
	}
	var b bytes.Buffer
	copied := 0
	for _, o := range outlines {
		changedURL, err := change(o.url)
		if err != nil {
			return nil, 0, err
		}
		if changedURL == o.url {
			continue
		}
		b.Write(doc.text[copied:o.start])
		b.WriteString(doc.value(o, changedURL))
		if b.Len()+len(doc.text)-o.end > MaxSize {
			return nil, 0, fmt.Errorf("the rewritten list would be larger than %d MiB", MaxSize>>20)
		}
		copied = o.end
		changed++
	}
	if changed == 0 {
		return bytes.Clone(in), 0, nil
	}
	b.Write(doc.text[copied:])
	out, err = doc.encode(b.Bytes())
	return out, changed, err
}

// value returns the attribute value for an outline's new URL. The part that both URLs
// have in common at their end keeps its spelling (&amp; or &#38;), so that rewriting back
// restores the document.
func (d *document) value(o outline, url string) string {
	written := string(bytes.Trim(d.text[o.start:o.end], space))
	if plain, err := d.unescape([]byte(written)); err != nil || plain != o.url {
		return d.escape(url) // white space that is escaped
	}
	if prefix, ok := strings.CutSuffix(url, o.url); ok {
		return d.escape(prefix) + written
	}
	if prefix, ok := strings.CutSuffix(o.url, url); ok {
		if written, ok := strings.CutPrefix(written, d.escape(prefix)); ok {
			return written
		}
	}
	return d.escape(url)
}

// escape converts a text to an attribute value. Characters outside of ASCII become
// references if the document's encoding may not have them.
func (d *document) escape(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '&':
			b.WriteString("&amp;")
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '"':
			b.WriteString("&quot;")
		case r == '\'':
			b.WriteString("&#39;") // OPML 1.0 readers with an HTML parser do not know &apos;
		case r < ' ', r > '~' && !d.unicode:
			fmt.Fprintf(&b, "&#%d;", r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
