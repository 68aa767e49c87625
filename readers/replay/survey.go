// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"fmt"
)

// prospect is what the beginning of a log tells of all of it.
type prospect struct {
	path    string // of the feed; empty: nothing was asked for
	headers bool   // logged bytes include those of header fields
	lines   int    // that were looked at
	sound   int    // of them those that are requests
}

// survey looks at the beginning of a log. Without a path it chooses the one that
// most lines ask for by GET or HEAD; of two equals the first in the alphabet.
func survey(head []byte, path string) prospect {
	s := prospect{path: path}
	counts := make(map[string]int)
	var p parser
	var l Line
	var bare, dressed int // answers without a body, by whether bytes were logged for them
	for text := range bytes.Lines(head) {
		s.lines++
		if p.parse(bytes.TrimSuffix(text, []byte{'\n'}), &l) != nil {
			continue
		}
		s.sound++
		switch {
		case l.Known: // Caddy logs bodies only
			bare++
		case l.bodiless() && l.Bytes > 0:
			dressed++
		case l.bodiless():
			bare++
		}
		if l.asks() {
			counts[string(l.path())]++
		}
	}
	if path == "" {
		for at, n := range counts {
			if n > counts[s.path] || n == counts[s.path] && at < s.path {
				s.path = at
			}
		}
	}
	// Apache's %b and nginx's $body_bytes_sent count bodies, %O and $bytes_sent all
	// that is sent. An answer without a body gives away which of them it is.
	s.headers = dressed >= bare
	return s
}

// bodiless reports whether the logged answer had no body.
func (l *Line) bodiless() bool {
	return l.Status == 304 || string(l.Method) == "HEAD"
}

// nothing says why there is nothing to replay.
func (s prospect) nothing() error {
	switch {
	case s.lines == 0:
		return fmt.Errorf("%w: the log is empty", ErrNoRequests)
	case s.sound == 0:
		return fmt.Errorf("%w: of the first %d lines none is in the combined log format or in Caddy's JSON", ErrNoRequests, s.lines)
	case s.path != "":
		return fmt.Errorf("%w: no line asks for %s", ErrNoRequests, s.path)
	}
	return fmt.Errorf("%w: none of the first %d lines is a GET or HEAD", ErrNoRequests, s.lines)
}
