// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package replay runs an access log through the real engine on a virtual clock, and
// reports which requests the origin would have received with Pollard in front of it.
//
// Lines are read one by one (log.go), in the combined format or in Caddy's JSON (line.go).
// Each line becomes a request of a reader (reader.go). The combined format lacks most
// header fields, so they are inferred from the answer. A [cache.Cache] over a store in
// memory answers the request and polls a model of the origin (origin.go, feed.go), at the
// time of the log (gateway.go). The result is a [Report].
//
// Memory does not depend on the length of the log. A replay does not simulate how
// readers would react to different answers: their requests are those of the log.
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

// Options are the options of a replay.
type Options struct {
	// Feed is the document that the model of the origin serves.
	Feed []byte
	// Header has header fields of the origin's answers. They are added to, or replace,
	// an ETag, a Last-Modified and a Content-Type. An empty value removes one of these.
	Header http.Header
	// ChangeEvery is the time between new entries of the feed, counted from the first
	// request for it. If it is 0, the feed never changes.
	ChangeEvery time.Duration
	// Path is the feed's path. Requests for other paths are not replayed. If it is empty,
	// the beginning of the log decides, if one path is clearly the feed's.
	Path string
	// Rules are the operator's rules.
	Rules policy.Rules
	// Limits returns the rules of a shield that apply to a request. It must not keep the
	// request. If it is nil, no request is refused.
	Limits func(*http.Request) readers.Limits
	// Progress is called now and then with the number of lines that have been read. Nil: it is not.
	Progress func(lines int64)
}

// ErrNoRequests reports that the log has no request that can be replayed.
var ErrNoRequests = errors.New("no request to replay")

// Run replays a log, of which the parts may be given in any order and compressed with gzip.
// It returns an error if the feed or the log cannot be read, and [ErrNoRequests] if the log
// has nothing to replay.
func Run(ctx context.Context, logs []io.Reader, o Options) (*Report, error) {
	lines, err := openLogs(logs)
	if err != nil {
		return nil, fmt.Errorf("reading the log: %w", err)
	}
	found := readOpening(lines.opening, o.Path)
	if found.path == "" {
		return nil, found.nothing()
	}
	s, err := newGateway(o, found)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.replayAll(ctx, lines); err != nil {
		return nil, err
	}
	if s.report.Requests == 0 {
		return nil, found.nothing()
	}
	return s.finish(), nil
}

// farApart is how much later than the line before it a line is not believed alone.
const farApart = 24 * time.Hour

// reportAfter is how many lines are replayed between two reports of progress.
const reportAfter = 1000

func (s *gateway) replayAll(ctx context.Context, log *accessLog) error {
	var late *Line // more than a day later than the line before it: its date is wrong, unless the next line is as late
	for {
		text, err := log.next()
		if errors.Is(err, io.EOF) {
			return s.replayLine(ctx, late)
		}
		if err != nil {
			return fmt.Errorf("reading the log after %d lines: %w", s.report.Lines, err)
		}
		if s.report.Lines++; s.report.Lines%reportAfter == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if s.options.Progress != nil {
				s.options.Progress(s.report.Lines)
			}
		}
		l, err := parse(text)
		switch {
		case errors.Is(err, errOther):
			s.report.OtherLines++
			continue
		case err != nil:
			s.report.Malformed++
			continue
		case late != nil && l.Time.Before(late.Time.Add(-farApart)):
			s.report.Malformed++
		default:
			if err := s.replayLine(ctx, late); err != nil {
				return err
			}
		}
		if late = nil; !s.last.IsZero() && l.Time.Sub(s.last) > farApart {
			late = &l
		} else if err := s.replayLine(ctx, &l); err != nil {
			return err
		}
	}
}

func (s *gateway) replayLine(ctx context.Context, l *Line) error {
	if l == nil {
		return nil
	}
	s.last = l.Time
	if err := s.replay(ctx, l); err != nil {
		return fmt.Errorf("replaying line %d: %w", s.report.Lines, err)
	}
	return nil
}
