// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"html"
	"regexp"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
	"github.com/feedpollard/pollard/internal/namespace"
)

// titleOf returns the title in a child of a channel or feed, as one short line of text, or
// "" if the child is not a title.
func titleOf(f *field) string {
	if f.name != "title" {
		return ""
	}
	switch f.vocabulary {
	case namespace.RSS:
		// RSS 2.0 does not say whether a title is text or HTML. Readers treat it as HTML.
		return clip(stripped(string(f.text)))
	case namespace.Atom:
		switch strings.ToLower(markup.Attribute(f.attributes, "type")) { // RFC 4287 section 3.1.1
		case "html", "text/html":
			return clip(stripped(string(f.text)))
		case "xhtml":
			return clip(string(f.childText)) // of the div around it
		}
		return clip(cmp.Or(strings.Trim(string(f.text), markup.Space), string(f.childText)))
	}
	return ""
}

var tag = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)

// stripped returns the text of a title in HTML.
func stripped(text string) string { return html.UnescapeString(tag.ReplaceAllString(text, "")) }
