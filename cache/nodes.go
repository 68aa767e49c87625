// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"
)

// polledElsewhere reports whether another node makes the first poll of a feed, as far
// as its record tells: the poll has been granted, and nothing has come of it.
func (f *Feed) polledElsewhere(s *state) bool {
	return s.version == 0 && s.known && s.facts.At.IsZero() && s.facts.Winner == "" && f.cache.elapsed() < f.unanswered(s) && f.underWay() == nil
}

// unanswered is until when the outcome of the last poll may come, as elapsed counts,
// unless redirects hold it up. A node that has not brought it by then may be no more.
func (f *Feed) unanswered(s *state) time.Duration { return s.granted + grace + f.rules().Timeout }

// awaitNode waits for the outcome of a poll that another node makes, as long as for one
// of this node.
func (f *Feed) awaitNode(ctx context.Context, s *state) *state {
	ctx, cancel := context.WithTimeout(ctx, f.unanswered(s)-f.cache.elapsed())
	defer cancel()
	for {
		news := f.news() // of what comes after the next line
		if s = f.state.Load(); !f.polledElsewhere(s) {
			return s
		}
		select {
		case <-news:
		case <-ctx.Done():
			return s
		}
	}
}

// news is closed when readers are shown another state.
func (f *Feed) news() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shown == nil {
		f.shown = make(chan struct{})
	}
	return f.shown
}
