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
	"github.com/feedpollard/pollard/internal/readers"
)

// opening is what the beginning of a log says.
type opening struct {
	path    string       // of the feed; empty if the log has no requests or the path is not clear
	likely  []*candidate // the likeliest paths, best first
	headers bool         // whether logged bytes include header fields
	lines   int          // read
	valid   int          // lines that are requests
}

// candidate is a path that may be the feed's.
type candidate struct {
	path    string
	asked   int // requests
	readers int // requests with the User-Agent of a feed reader
}

const (
	// maxLikely bounds the paths that are suggested.
	maxLikely = 10
	// clearly is by what factor the best path's score must exceed the next one's.
	clearly = 3
)

// readOpening reads the beginning of a log. If no path is given, it chooses the path that is
// clearly the feed's by its name and by the User-Agents that request it. The number of
// requests is not enough: on most sites the home page and its images have more.
func readOpening(head []byte, given string) opening {
	s := opening{path: given}
	all := make(map[string]*candidate)
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
		case l.Known: // Caddy logs bodies only
			bare++
		case l.noBody() && l.Bytes > 0:
			sized++
		case l.noBody():
			bare++
		}
		if !l.asks() {
			continue
		}
		c := all[l.path()]
		if c == nil {
			c = &candidate{path: l.path()}
			all[c.path] = c
		}
		c.asked++
		if namesReader(l.Header.Get("User-Agent")) {
			c.readers++
		}
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(b.score(), a.score()), cmp.Compare(b.asked, a.asked), cmp.Compare(a.path, b.path))
	})
	s.likely = sorted[:min(len(sorted), maxLikely)]
	if n := len(sorted); s.path == "" && (n == 1 || n > 1 && sorted[0].score() > 0 && sorted[0].score() >= clearly*sorted[1].score()) {
		s.path = sorted[0].path
	}
	// Apache's %b and nginx's $body_bytes_sent count bodies, %O and $bytes_sent whole
	// responses. The bytes of an answer without a body show which of them the log has.
	s.headers = sized >= bare
	return s
}

// score rates a candidate by the requests of feed readers, and by its name.
func (c *candidate) score() int {
	if namedAsFeed(c.path) {
		return 10*c.readers + c.asked
	}
	return c.readers
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

// namesReader reports whether a User-Agent looks like a feed reader's.
func namesReader(text string) bool {
	a := readers.ParseAgent(text)
	if a.Subscribers > 0 || a.FeedID != "" {
		return true
	}
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{"feed", "rss", "reader", "podcast", "newsblur", "netnewswire", "newsboat", "miniflux", "inoreader", "tt-rss", "overcast"}, func(word string) bool {
		return strings.Contains(text, word)
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
	for _, c := range s.likely {
		fmt.Fprintf(&b, "%8d requests, %d by feed readers: %s\n", c.asked, c.readers, feedurl.OneLine(c.path))
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
