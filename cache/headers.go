// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Header values that never change. They are shared by all responses: whoever
// changes a response's header must replace values, not edit them, as net/http does.
var (
	varyCoding = []string{"Accept-Encoding"}
	nosniff    = []string{"nosniff"}
	// The URL of a feed may hold a token: where its links lead nobody learns it.
	noReferrer = []string{"no-referrer"}
	// A feed shown by a browser runs as nothing and loads nothing: documents of
	// third parties come out of the gateway's own origin.
	sandboxed = []string{"default-src 'none'; sandbox"}
)

// served tells how a response came about. The zero value is a hit.
type served struct {
	forward string // stale or miss (RFC 9211 section 2.2); empty: a hit
	status  int    // of the origin's answer; 0: none
	stored  bool   // the answer became the version
	joined  bool   // the poll was made for another reader as well
}

// forwarded describes a poll that the response waited for.
func forwarded(before, after *state, joined, done bool) served {
	if !done || after.facts.At.Equal(before.facts.At) {
		return served{} // served from the store without an answer
	}
	how := served{forward: "stale", status: after.facts.Status, joined: joined, stored: after.version != before.version}
	if before.version == 0 {
		how.forward = "miss"
	}
	return how
}

// timed are the header values that change with time, made at most once a second.
type timed struct {
	state  *state
	second int64
	how    served

	cacheControl, cacheStatus, vary []string
}

// headers sets what a 200 and a 304 have in common. There is no Age: the feed comes
// from here, and max-age is what is left of the time to the next poll. Whoever
// subtracted an Age from it (RFC 9111 section 4.2) would take it for stale.
func (f *Feed) headers(h http.Header, s *state, how served, now time.Duration) {
	m := f.timed.Load()
	if second := int64(now / time.Second); m == nil || m.second != second || m.state != s || m.how != how {
		m = f.timedHeaders(s, how, now)
		f.timed.Store(m)
	}
	h["Cache-Control"] = m.cacheControl
	h["Cache-Status"] = m.cacheStatus
	h["Last-Modified"] = s.headers.lastModified
	h["Vary"] = m.vary
}

// describe sets what describes a body.
func (f *Feed) describe(h http.Header, s *state) {
	h["Content-Type"] = s.headers.contentType
	h["X-Content-Type-Options"] = nosniff
	if !f.key.shielded() {
		h["Content-Security-Policy"], h["Referrer-Policy"] = sandboxed, noReferrer
		return
	}
	maps.Copy(h, s.memo.Version.Header)
}

func (f *Feed) timedHeaders(s *state, how served, now time.Duration) *timed {
	m := &timed{state: s, second: int64(now / time.Second), how: how, vary: varyCoding}
	if vary := s.memo.Version.Vary; len(vary) > 0 {
		m.vary = []string{strings.Join(append(varyCoding[:1:1], vary...), ", ")}
	}
	m.cacheControl = []string{"max-age=" + strconv.FormatInt(s.maxAge(now), 10)}
	m.cacheStatus = []string{how.cacheStatus(s, now)}
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
	case left <= 0 || s.memo.Alias != "":
		return 60
	}
	return int64((left + time.Second - 1) / time.Second)
}

// cacheStatus is the value of Cache-Status (RFC 9211). The ttl is the time to the
// next poll, and the detail the hint that decided it.
func (how served) cacheStatus(s *state, now time.Duration) string {
	b := make([]byte, 0, 96)
	b = append(b, "Pollard"...)
	if how.forward == "" {
		b = append(b, "; hit"...)
	} else {
		b = append(append(b, "; fwd="...), how.forward...)
		if how.status != 0 {
			b = strconv.AppendInt(append(b, "; fwd-status="...), int64(how.status), 10)
		}
		if how.stored {
			b = append(b, "; stored"...)
		}
		if how.joined {
			b = append(b, "; collapsed"...)
		}
	}
	if !s.ended {
		b = strconv.AppendInt(append(b, "; ttl="...), int64((s.due-now)/time.Second), 10)
	}
	if reason := s.facts.Winner; reason != "" {
		b = append(append(b, "; detail="...), reason...)
	}
	return string(b)
}
