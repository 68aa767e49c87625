// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
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
	// A feed shown by a browser runs as nothing and loads nothing: documents of
	// third parties come out of the gateway's own origin.
	guarded = http.Header{"Content-Security-Policy": {"default-src 'none'; sandbox"}}
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
	if !done || after.memo.Last.At.Equal(before.memo.Last.At) {
		return served{} // served from the store without an answer
	}
	how := served{forward: "stale", status: after.memo.Last.Status, joined: joined, stored: after.Version != before.Version}
	if before.Version == 0 {
		how.forward = "miss"
	}
	return how
}

// minted are the header values that change with time, made at most once a second.
type minted struct {
	state  *state
	second int64
	how    served

	cacheControl, age, cacheStatus, vary []string

	header http.Header // more fields: what keeps a third party's document harmless, or a site's own
}

// headers sets what all answers with the feed have in common.
func (f *Feed) headers(h http.Header, p *prepared, s *state, how served, now time.Time) {
	m := f.minted.Load()
	if second := now.Unix(); m == nil || m.second != second || m.state != s || m.how != how {
		m = f.mint(s, how, now)
		f.minted.Store(m)
	}
	h["Cache-Control"] = m.cacheControl
	h["Age"] = m.age
	h["Cache-Status"] = m.cacheStatus
	h["Last-Modified"] = p.lastModified
	h["Vary"] = m.vary
	h["Content-Type"] = p.contentType
	h["X-Content-Type-Options"] = nosniff
	for name, values := range m.header {
		h[name] = values
	}
}

func (f *Feed) mint(s *state, how served, now time.Time) *minted {
	m := &minted{state: s, second: now.Unix(), how: how, vary: varyCoding, header: guarded}
	if f.shielded() {
		v := &s.memo.Version
		m.header, m.vary = v.Header, []string{strings.Join(append([]string{"Accept-Encoding"}, v.Vary...), ", ")}
	}
	m.cacheControl = []string{"max-age=" + strconv.FormatInt(s.maxAge(now), 10)}
	m.age = []string{strconv.FormatInt(max(0, int64(now.Sub(s.memo.Validated)/time.Second)), 10)}
	m.cacheStatus = []string{how.cacheStatus(s, now)}
	return m
}

// maxAge is how long a reader may leave us alone, in seconds: until the next
// planned poll, as nothing changes before. A reader who comes just then waits
// for that poll. While one is overdue, a minute.
func (s *state) maxAge(now time.Time) int64 {
	left := s.Next.Sub(now)
	switch {
	case left <= 0:
		return 60
	case s.never(): // polling has ended; a feed may come back by hand
		return 24 * 60 * 60
	}
	return int64((left + time.Second - 1) / time.Second)
}

// cacheStatus is the value of Cache-Status (RFC 9211). The ttl is the time to the
// next poll, and the detail the hint that decided it.
func (how served) cacheStatus(s *state, now time.Time) string {
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
	if !s.never() {
		ttl := int64(s.Next.Sub(now) / time.Second)
		b = strconv.AppendInt(append(b, "; ttl="...), ttl, 10)
	}
	if reason := s.memo.Decision.Winner; reason != "" {
		b = append(append(b, "; detail="...), reason...)
	}
	return string(b)
}
