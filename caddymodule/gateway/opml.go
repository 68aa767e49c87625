// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/net/html/charset"

	"github.com/feedpollard/pollard/cache"
)

const (
	maxOPML      = 16 << 20 // bytes of a subscription list
	maxOPMLFeeds = 100_000
	maxOPMLDepth = 100 // folders within folders
)

var errNotOPML = errors.New("not OPML")

// readOPMLFile returns the feeds of a subscription list by canonical URL, and how
// many outlines were passed over, as their URL is none that can be polled.
func readOPMLFile(path string) (feeds []string, skipped int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err // names the path already
	}
	defer f.Close()
	feeds, skipped, err = readOPML(f)
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return feeds, skipped, nil
}

// readOPML reads OPML 1.0 or 2.0 as it is found in the wild: outlines may be
// nested, attribute names may be in any case, and a stray & is no reason to
// refuse a list that every feed reader imports.
func readOPML(r io.Reader) (feeds []string, skipped int, err error) {
	limited := &io.LimitedReader{R: r, N: maxOPML + 1}
	dec := xml.NewDecoder(limited)
	dec.Strict = false
	dec.Entity = xml.HTMLEntity
	dec.CharsetReader = charset.NewReaderLabel
	known := make(map[string]bool)
	depth := 0
	for rooted := false; ; {
		token, err := dec.Token()
		if limited.N == 0 {
			return nil, 0, fmt.Errorf("%w: it is larger than %d MiB", errNotOPML, maxOPML>>20)
		}
		if errors.Is(err, io.EOF) && rooted {
			return feeds, skipped, nil
		}
		if err != nil {
			return nil, 0, fmt.Errorf("%w: %w", errNotOPML, err)
		}
		switch e := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			if depth++; depth > maxOPMLDepth {
				return nil, 0, fmt.Errorf("%w: more than %d elements are nested", errNotOPML, maxOPMLDepth)
			}
			if !rooted {
				if !strings.EqualFold(e.Name.Local, "opml") {
					return nil, 0, fmt.Errorf("%w: the document is <%s>, expected <opml>", errNotOPML, e.Name.Local)
				}
				rooted = true
			}
			raw := outlineURL(e)
			if raw == "" {
				continue
			}
			feed, err := cache.Canonical(raw)
			if err != nil {
				skipped++
				continue
			}
			if !known[feed] {
				if len(feeds) == maxOPMLFeeds {
					return nil, 0, fmt.Errorf("it lists more than %d feeds", maxOPMLFeeds)
				}
				known[feed] = true
				feeds = append(feeds, feed)
			}
		}
	}
}

// outlineURL returns the feed that an outline element names, "" for a folder or
// another element.
func outlineURL(e xml.StartElement) string {
	if !strings.EqualFold(e.Name.Local, "outline") {
		return ""
	}
	for _, a := range e.Attr {
		if strings.EqualFold(a.Name.Local, "xmlUrl") {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}
