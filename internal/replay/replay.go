// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay runs an access log through the real engine on a virtual clock,
// and tells what an origin would have seen if Pollard had stood before it.
//
// Lines are read one by one (log.go), in the combined format (combined.go) or in
// Caddy's JSON (caddy.go), while those before them are replayed (ahead.go). A line becomes a request of a reader (visitor.go), of
// which the combined format tells less than was sent: what is missing is inferred.
// The request is answered by a [cache.Cache] over a store in memory, which polls a
// model of the origin (origin.go, feed.go) and believes in the time of the log.
// What came of it is counted (tally.go) and told (report.go, text.go).
//
// Memory does not depend on the length of the log. It is no simulation of
// readers: they go on asking as they did, whatever they are answered.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
)

// Options are what a replay needs besides the log.
type Options struct {
	// Feed is the document that the model of the origin serves.
	Feed []byte
	// Header is what the origin's answers carry besides, or in place of, an ETag, a
	// Last-Modified and a Content-Type. An empty value removes one of these.
	Header http.Header
	// ChangeEvery is how often the feed gets a new entry, counted from the first
	// line of the log. 0: never.
	ChangeEvery time.Duration
	// Path is the feed's path; lines with another one are passed over. Empty: the one
	// that is a feed's by the first lines, if that is clear.
	Path string
	// Rules are the operator's.
	Rules policy.Rules
	// Defence is the shield's against rude readers. The zero Defence refuses nothing.
	Defence readers.Defence
	// Exempt tells who is never refused. The request is good during the call. Nil: nobody.
	Exempt func(*http.Request) bool
	// Progress is called every now and then, and at the end. Nil: nobody is told.
	Progress func(Progress)
}

// Progress is how far a replay has come.
type Progress struct {
	Taken   int64 // bytes of the log as it lies there, compressed or not
	Lines   int64
	Elapsed time.Duration
	Done    bool
}

// ErrNoRequests says that the log holds no request that could be replayed.
var ErrNoRequests = errors.New("no request to replay")

// Run replays a log, which may be compressed with gzip. It fails where the feed
// or the log cannot be read, or where the log has nothing to replay.
func Run(ctx context.Context, log io.Reader, o Options) (*Report, error) {
	lines, err := openLog(log)
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	head, err := lines.head()
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	found := survey(head, o.Path)
	if found.path == "" {
		return nil, found.nothing()
	}
	s, err := newStage(o, found)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.play(ctx, lines); err != nil {
		return nil, err
	}
	if s.tally.requests == 0 {
		return nil, found.nothing()
	}
	return s.report(), nil
}

// play replays line after line.
func (s *stage) play(ctx context.Context, log *accessLog) error {
	began := time.Now()
	stop := make(chan struct{})
	full, free := readAhead(log, stop)
	defer func() {
		close(stop)
		for range full { // until it has ended
		}
	}()
	for b := range full {
		for i := range b.lines {
			s.tally.lines++
			switch l := &b.lines[i]; {
			case l.err == nil:
				if err := s.replay(ctx, &l.Line); err != nil {
					return fmt.Errorf("replaying line %d: %w", s.tally.lines, err)
				}
			case errors.Is(l.err, errOther):
				s.tally.others++
			default:
				s.tally.malformed++
			}
		}
		done := errors.Is(b.err, io.EOF)
		if b.err != nil && !done {
			return fmt.Errorf("reading the log after %d lines: %w", s.tally.lines, b.err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		s.tell(Progress{Taken: b.taken, Lines: s.tally.lines, Elapsed: time.Since(began), Done: done})
		free <- b
	}
	return nil
}

func (s *stage) tell(p Progress) {
	if s.options.Progress != nil {
		s.options.Progress(p)
	}
}
