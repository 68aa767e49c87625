// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// opening is what the beginning of a log says.
type opening struct {
	path    string         // of the feed; empty if the log has no requests or the path is not clear
	asked   map[string]int // requests by path
	likely  []string       // the likeliest paths, best first
	headers bool           // whether logged bytes include header fields
	lines   int            // read
	valid   int            // lines that are requests
}

const (
	// maxLikely bounds the paths that are suggested.
	maxLikely = 10
	// clearly is how many times more requests than the next one with a feed's name the feed must have.
	clearly = 3
)

// readOpening reads the beginning of a log. If no path is given, it chooses the path whose name is clearly
// that of the feed. The number of requests is not enough: on most sites the home page and its images have
// more.
func readOpening(head []byte, given string) opening {
	s := opening{path: given, asked: make(map[string]int)}
	var bare, sized int // answers without a body, by whether bytes were logged for them
	for text := range bytes.Lines(head) {
		text = bytes.TrimRight(text, "\r\n")
		if len(text) == 0 {
			continue
		}
		s.lines++
		l, err := parse(text)
		if err != nil {
			continue
		}
		s.valid++
		switch {
		case l.HasHeader: // Caddy logs bodies only
			bare++
		case l.noBody() && l.Bytes > 0:
			sized++
		case l.noBody():
			bare++
		}
		if l.asks() {
			s.asked[l.path()]++
		}
	}
	// named is how many requests there are for a path whose name is that of a feed.
	named := func(path string) int {
		if !namedAsFeed(path) {
			return 0
		}
		return s.asked[path]
	}
	paths := slices.SortedFunc(maps.Keys(s.asked), func(a, b string) int {
		return cmp.Or(named(b)-named(a), s.asked[b]-s.asked[a], cmp.Compare(a, b))
	})
	s.likely = paths[:min(len(paths), maxLikely)]
	if n := len(paths); s.path == "" && (n == 1 || n > 1 && named(paths[0]) > 0 && named(paths[0]) >= clearly*named(paths[1])) {
		s.path = paths[0]
	}
	// Apache's %b and nginx's $body_bytes_sent count bodies, %O and $bytes_sent whole
	// responses. The bytes of an answer without a body show which of them the log has.
	s.headers = sized >= bare
	return s
}

// namedAsFeed reports whether a path looks like a feed's.
func namedAsFeed(name string) bool {
	name = strings.ToLower(name)
	switch path.Ext(strings.TrimSuffix(name, "/")) {
	case ".xml", ".rss", ".atom", ".rdf":
		return !strings.Contains(name, "sitemap")
	}
	return slices.ContainsFunc(strings.FieldsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }), func(word string) bool {
		word = strings.TrimRight(word, "0123456789")
		return word == "feed" || word == "feeds" || word == "rss" || word == "atom"
	})
}

// nothing returns an error that says why there is nothing to replay.
func (s opening) nothing() error {
	switch {
	case s.lines == 0:
		return fmt.Errorf("%w: the log is empty", ErrNoRequests)
	case s.valid == 0:
		return fmt.Errorf("%w: of the first %d lines none is in the combined log format or in Caddy's JSON", ErrNoRequests, s.lines)
	case s.path != "":
		return &AmbiguousError{fmt.Sprintf("no line asks for %s", s.path), s.suggestions()}
	case len(s.likely) > 0:
		return &AmbiguousError{"it is not clear which path is the feed's: say so with --path", s.suggestions()}
	}
	return fmt.Errorf("%w: none of the first %d lines is a GET or HEAD", ErrNoRequests, s.lines)
}

func (s opening) suggestions() string {
	if len(s.likely) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The likeliest paths of the first %d lines:\n", s.lines)
	for _, path := range s.likely {
		fmt.Fprintf(&b, "%8d requests: %s\n", s.asked[path], feedurl.OneLine(path))
	}
	return b.String()
}

// AmbiguousError is an [ErrNoRequests]: the log does not show which path is the feed's.
type AmbiguousError struct {
	why         string
	Suggestions string // the likeliest paths, one per line; may be empty
}

func (e *AmbiguousError) Error() string { return ErrNoRequests.Error() + ": " + e.why }
func (e *AmbiguousError) Unwrap() error { return ErrNoRequests }
