// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache/version"
)

// statusAfterPoll describes a response that waited for a poll.
func statusAfterPoll(before, after *state, joined, done bool) version.CacheStatus {
	if !done || after.last.At.Equal(before.last.At) {
		return version.CacheStatus{} // served from the store without an answer
	}
	how := version.CacheStatus{Forward: "stale", Status: after.last.Status, Collapsed: joined, Stored: after.version != before.version}
	if before.version == 0 {
		how.Forward = "miss"
	}
	return how
}

// timedFields are the header values that change with time, made at most once a second.
type timedFields struct {
	state  *state
	second int64
	how    version.CacheStatus

	cacheControl, cacheStatus []string
}

// headers sets the fields that change with time, which a 200 and a 304 have in common. There is
// no Age: max-age is the time left until the next poll, and a cache that subtracted an Age from
// it (RFC 9111 section 4.2) would take the feed for stale.
func (f *Feed) headers(h http.Header, s *state, how version.CacheStatus, now time.Duration) {
	m := f.timedFields.Load()
	if second := int64(now / time.Second); m == nil || m.second != second || m.state != s || m.how != how {
		m = f.newTimedFields(s, how, now)
		f.timedFields.Store(m)
	}
	h["Cache-Control"] = m.cacheControl
	h["Cache-Status"] = m.cacheStatus
}

func (f *Feed) newTimedFields(s *state, how version.CacheStatus, now time.Duration) *timedFields {
	m := &timedFields{state: s, second: int64(now / time.Second), how: how}
	m.cacheControl = []string{"max-age=" + strconv.FormatInt(s.maxAge(now), 10)}
	m.cacheStatus = []string{how.Text(s.due-now, !s.ended, s.last.Winner)}
	return m
}

// maxAge is how long a reader may leave us alone, in seconds: until the next
// planned poll, as nothing changes before. A reader who comes just then waits
// for that poll. While one is overdue, a minute; so it is where the feed has become an
// alias, as its own next poll is far and says nothing of those of the other.
func (s *state) maxAge(now time.Duration) int64 {
	left := s.due - now
	switch {
	case s.ended: // a feed may come back by hand
		return 24 * 60 * 60
	case left <= 0 || s.feed.Alias != "":
		return 60
	}
	return int64((left + time.Second - 1) / time.Second)
}
