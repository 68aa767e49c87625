// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"cmp"
	"html"
	"regexp"
	"strings"

	"github.com/feedpollard/pollard/policy/document/internal/markup"
	"github.com/feedpollard/pollard/policy/document/internal/namespace"
)

// titleOf is the title that a child of a channel or feed gives it, as one short line of
// text; empty: it gives none.
func titleOf(f *field) string {
	if f.name != "title" {
		return ""
	}
	switch f.vocabulary {
	case namespace.RSS:
		// RSS 2.0 does not say whether a title is text or HTML, and readers take it for HTML.
		return clip(stripped(string(f.text)))
	case namespace.Atom:
		switch strings.ToLower(attribute(f.attributes, "type")) { // RFC 4287 section 3.1.1
		case "html", "text/html":
			return clip(stripped(string(f.text)))
		case "xhtml":
			return clip(string(f.partText)) // of the div around it
		}
		return clip(cmp.Or(strings.Trim(string(f.text), markup.Space), string(f.partText)))
	}
	return ""
}

var tag = regexp.MustCompile(`</?[A-Za-z][^<>]*>`)

// stripped is the text of HTML, as far as a title has any.
func stripped(text string) string { return html.UnescapeString(tag.ReplaceAllString(text, "")) }
