// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/markup"
)

var pageTitle = regexp.MustCompile(`(?is)<title[^>]*>([^<]*)`)

// otherRoot returns the error for a document with another root element than a feed's.
func otherRoot(root xml.Name, text []byte) error {
	switch strings.ToLower(root.Local) {
	case "html", "head", "body", "title", "meta", "script", "div", "center", "h1", "p", "br", "b":
		return fmt.Errorf("%w: %s", ErrNotFeed, describePage(text))
	case "entry":
		return fmt.Errorf("%w: a single Atom entry", ErrNotFeed)
	case "channel":
		return fmt.Errorf("%w: RSS 1.1, which is not known here", ErrNotFeed)
	case "feed":
		return fmt.Errorf("%w: <feed> in the unknown namespace %q", ErrNotFeed, clip(root.Space))
	}
	return fmt.Errorf("%w: XML with the root element <%s>", ErrNotFeed, clip(root.Local))
}

// notMarkup returns the error for a document without a root element, or with text before it.
func notMarkup(text []byte) error {
	if markup.IsPage(text) {
		return fmt.Errorf("%w: %s", ErrNotFeed, describePage(text))
	}
	return fmt.Errorf("%w: text that starts with %q", ErrNotFeed, clip(string(text[:min(len(text), 200)])))
}

// binaryType returns the type of a picture, an archive or a feed that was compressed
// without a Content-Encoding, and "" for text.
func binaryType(body []byte) string {
	kind := http.DetectContentType(body[:min(len(body), 512)])
	if strings.HasPrefix(kind, "text/") || kind == "application/octet-stream" {
		return ""
	}
	return kind
}

// describePage describes an HTML page by its title, which distinguishes log-in pages,
// challenges and errors.
func describePage(text []byte) string {
	if m := pageTitle.FindSubmatch(markup.Head(text)); m != nil {
		if title := clip(html.UnescapeString(string(bytes.TrimSpace(m[1])))); title != "" {
			return fmt.Sprintf("an HTML page titled %q", title)
		}
	}
	return "an HTML page"
}

// clip shortens a text of a document to one line for a message.
func clip(text string) string { return feedurl.Short(text, 80) }
