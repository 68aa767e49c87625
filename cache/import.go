// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// importBatch is how many feeds are stored at once, and importBytes how many bytes
	// of bodies.
	importBatch = 256
	importBytes = 8 << 20
	// longest is how far a next poll may be away: origins' pauses end within a week, and
	// no operator's interval is longer than a year.
	longest = 366 * 24 * time.Hour
)

// Importer takes feeds into a store.
type Importer struct {
	Store store.Store
	// Host is whom polls of a URL ask.
	Host func(u feedurl.URL) policy.Host
	// Shielded reports whether a key that is not a URL is that of a shielded feed.
	Shielded func(key string) bool
	// Refused is called with the number of each invalid line.
	Refused func(number int64, err error)
	// Report is called from time to time with the number of feeds so far.
	Report func(feeds int64)

	now   time.Time
	batch []store.Saved
	size  int
	done  int64
}

// Import reads lines of JSON, as [Export] writes them, and returns how many of them have become
// feeds of the store. Lines that make no sense are left out. Of a feed that the store knows already,
// the later next poll counts; a line without a version does not replace it otherwise.
func (i *Importer) Import(ctx context.Context, r io.Reader) (feeds int64, err error) {
	in := bufio.NewReaderSize(r, 1<<16)
	for number := int64(1); ; number++ {
		text, end := in.ReadBytes('\n')
		if end != nil && end != io.EOF {
			return i.done, fmt.Errorf("reading line %d: %w", number, end)
		}
		if number == 1 {
			text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		}
		if text = bytes.TrimSpace(text); len(text) > 0 {
			i.now = time.Now()
			if saved, err := i.read(text); err != nil {
				i.Refused(number, err)
			} else if err := i.add(ctx, saved); err != nil {
				return i.done, err
			}
		}
		if end != nil {
			return i.done, i.flush(ctx)
		}
	}
}

func (i *Importer) add(ctx context.Context, s store.Saved) error {
	i.batch = append(i.batch, s)
	if s.Body != nil {
		i.size += len(s.Body.Data)
	}
	if len(i.batch) < importBatch && i.size < importBytes {
		return nil
	}
	return i.flush(ctx)
}

func (i *Importer) flush(ctx context.Context) error {
	if len(i.batch) == 0 {
		return nil
	}
	if err := i.Store.Restore(ctx, i.batch); err != nil {
		return fmt.Errorf("storing feeds, after %d of them: %w", i.done, err)
	}
	for _, s := range i.batch {
		if s.Pause == nil {
			i.done++
		}
	}
	i.batch, i.size = i.batch[:0], 0
	i.Report(i.done)
	return nil
}

// read makes a record of a line.
func (i *Importer) read(text []byte) (s store.Saved, err error) {
	if bytes.HasPrefix(text, []byte(`{"figure":`)) { // of an export by an earlier edition
		return s, errors.New("statistics are not imported: they stay in the store that counted them")
	}
	var l exported
	if err := json.Unmarshal(text, &l); err != nil {
		return s, fmt.Errorf("no line of an export: %w", err)
	}
	if l.Pause != nil {
		return i.readPause(l.Pause)
	}
	known := len(l.Memo) > 0 || len(l.Facts) > 0
	switch {
	case l.URL == "":
		return s, errors.New(`it names no feed: expected {"url": "https://..."}`)
	case known && shielded(l.URL):
		if !i.Shielded(l.URL) {
			return s, errors.New("its url is not a URL")
		}
	default:
		if l.URL, err = feedurl.Canonical(l.URL); err != nil {
			return s, err // says "not a feed URL"
		}
	}
	s.Record = store.Record{
		ID: IDOf(l.URL), URL: l.URL, Polled: i.ago(l.LastPoll), Asked: i.ago(l.LastReader), Hopped: i.ago(l.LastHop), Configured: l.Configured,
	}
	if l.NotBefore != nil {
		s.NotBefore = min(l.NotBefore.Sub(i.now), longest)
	}
	if !shielded(l.URL) {
		s.Host = i.Host(ParseKey(l.URL).url)
	}
	if s.In, err = i.in(l.NextPoll); err != nil {
		return s, err
	}
	if known {
		return s, i.readState(&s, &l)
	}
	// The operator brings it, so it is polled in the background though it has no version, and
	// idle_after counts from now.
	s.State, s.Hold, s.New, s.Configured = store.StateCold, (&state{}).leaseTime(policy.DefaultRules()), true, true
	s.Asked = max(s.Asked, 0)
	return s, nil
}

// readPause reads the pause of a host.
func (i *Importer) readPause(p *exportedPause) (store.Saved, error) {
	if !strings.HasPrefix(p.Scope, policy.ScopeHost) && !strings.HasPrefix(p.Scope, policy.ScopeDomain) {
		return store.Saved{}, fmt.Errorf("pause: scope %q is not known", feedurl.OneLine(p.Scope))
	}
	pause := store.Pause{Scope: p.Scope, For: p.Until.Sub(i.now), Why: p.Why, Step: max(0, p.Step)}
	return store.Saved{Pause: &pause}, nil
}

// ago is how long ago a time is; negative: never.
func (i *Importer) ago(t *time.Time) time.Duration {
	if t == nil {
		return -1
	}
	return max(0, i.now.Sub(*t))
}

// in is the time to the next poll. Without one, the feed is due.
func (i *Importer) in(text string) (time.Duration, error) {
	switch text {
	case "":
		return 0, nil
	case never:
		return store.Ended, nil
	}
	next, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("next_poll: %q is not a time: expected one such as 2026-11-21T08:00:00Z, or never", feedurl.OneLine(text))
	}
	in := next.Sub(i.now)
	if in > longest {
		return 0, fmt.Errorf("next_poll: %s is more than a year away", text)
	}
	return in, nil
}

// readState reads what an engine has kept. A damaged state or version costs a poll later, as it does
// in a store.
func (i *Importer) readState(s *store.Saved, l *exported) error {
	s.Hold, s.State, s.Facts, s.Memo = seconds(l.Hold), l.State, l.Facts, l.Memo
	if s.Hold < 0 || s.Hold > longest {
		return fmt.Errorf("hold_seconds: %g is not the length of an interval", l.Hold)
	}
	if s.Host.Spacing = seconds(l.Space); s.Host.Spacing < 0 || s.Host.Spacing > longest {
		return fmt.Errorf("spacing_seconds: %g is not the length of a gap", l.Space)
	}
	switch s.State {
	case store.StateCold, store.StateFresh, store.StateWaiting, store.StateFailing, store.StateGone:
	default:
		return fmt.Errorf("state: %q is not known", feedurl.OneLine(string(l.State)))
	}
	if l.Version != 0 {
		s.Version, s.Body = l.Version, &store.Body{Version: l.Version, Coding: l.Coding, Data: l.Data}
	}
	return nil
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
