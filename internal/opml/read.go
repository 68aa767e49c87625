// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package opml

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
)

// ErrInvalid reports that a document is not OPML. The error that wraps it says why.
var ErrInvalid = errors.New("not OPML")

// read returns a document in UTF-8, and its outlines. It accepts what readers accept: names in
// any case, a bare &, unclosed elements.
func read(in []byte) (text []byte, outlines []Outline, err error) {
	if len(in) > MaxSize {
		return nil, nil, fmt.Errorf("%w: it is larger than %d MiB", ErrInvalid, MaxSize>>20)
	}
	text = markup.UTF8(in, "")
	begin, depth := markup.Begin(text), 0
	for scanner := markup.NewScanner(markup.Repair(text[begin:]), true); ; {
		token, err := scanner.Next()
		if errors.Is(err, io.EOF) {
			if scanner.Root.Local != "" {
				return text, outlines, nil
			}
			err = errors.New("there is no XML in it")
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		switch e := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			depth++
			switch {
			case !strings.EqualFold(scanner.Root.Local, "opml"):
				return nil, nil, fmt.Errorf("%w: the document is <%.40s>, expected <opml>", ErrInvalid, e.Name.Local)
			case strings.EqualFold(e.Name.Local, "outline"):
				tag := scanner.Span()
				o := readOutline(e.Attr, text, markup.Span{Start: begin + tag.Start, End: begin + tag.End})
				o.depth = depth
				outlines = append(outlines, o)
			}
		}
	}
}

// readOutline reads the tag of an outline element.
func readOutline(attributes []xml.Attr, text []byte, tag markup.Span) (o Outline) {
	places := markup.Attributes(text, tag)
	if len(places) != len(attributes) {
		return o // never, as the decoder has read them
	}
	page, title := false, ""
	for i, a := range attributes {
		switch name := strings.ToLower(a.Name.Local); {
		case name == "type":
			page = page || isPage(a.Value)
		case name == "text" && o.Text == "":
			o.Text = a.Value
		case name == "title" && title == "":
			title = a.Value
		case name == "xmlurl" && o.URL == "":
			o.URL, o.place = strings.TrimSpace(a.Value), places[i].Value
		}
	}
	if page {
		o.URL = ""
	}
	o.Text = cmp.Or(o.Text, title)
	return o
}

// isPage reports whether an outline's URL is a page or document from which the reader
// makes a feed itself (FreshRSS's HTML+XPath, XML+XPath and JSON+DotNotation).
func isPage(outlineType string) bool {
	outlineType = strings.ToLower(outlineType)
	return strings.Contains(outlineType, "xpath") || strings.Contains(outlineType, "dotnotation")
}
