// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"strings"
	"time"
)

// FreshnessOf reads how long a response received at a time is fresh for a shared cache:
// by s-maxage, otherwise max-age, otherwise Expires less Date (RFC 9111 section 4.2.1).
// Heuristic lifetimes are not used: without an explicit one Source is empty. Raw is set
// for a Cache-Control without a lifetime as well.
func FreshnessOf(header http.Header, at time.Time) Freshness {
	f := Freshness{Age: age(header)}
	lines := header.Values("Cache-Control")
	if len(lines) > 0 {
		f.Raw = clip(strings.Join(lines, ", "))
		control := ParseCacheControl(lines)
		f.Revalidate = control.Has("must-revalidate") || control.Has("proxy-revalidate") || control.Has("no-cache")
		for _, name := range []string{HintSMaxAge, HintMaxAge} {
			if lifetime, ok := control.Seconds(name); ok {
				f.Source, f.Lifetime = name, lifetime
				return f
			}
		}
	}
	if lines := header.Values("Expires"); len(lines) > 0 {
		f.Source, f.Raw = HintExpires, clip(strings.Join(lines, ", "))
		f.Lifetime = untilExpires(lines, header.Get("Date"), at)
	}
	return f
}

// renewed returns the freshness after a 304, which replaces only the stored fields that it
// has itself (RFC 9111 section 3.2). The lifetime starts again with each 304.
func (f Freshness) renewed(header http.Header, at time.Time) Freshness {
	update := FreshnessOf(header, at)
	controlled := len(header.Values("Cache-Control")) > 0
	switch {
	case update.Source == "" && controlled && f.Source != HintExpires:
		return update
	case update.Source == "", // neither field came, or a Cache-Control without a lifetime beside the stored Expires
		// The stored Cache-Control stays, and it goes before any Expires.
		update.Source == HintExpires && !controlled && (f.Source == HintSMaxAge || f.Source == HintMaxAge):
		f.Age = update.Age
		if controlled {
			f.Revalidate = update.Revalidate
		}
		return f
	}
	if !controlled {
		update.Revalidate = f.Revalidate
	}
	return update
}

// left returns the rest of the lifetime when the response was received.
func (f Freshness) left() time.Duration { return max(0, f.Lifetime-f.Age) }

// untilExpires returns the lifetime by Expires, at least 0. A value that is not a date,
// such as 0, means "already expired" (RFC 9111 section 5.3). Of several lines the
// earliest date counts. Without Date the time of receipt takes its place.
func untilExpires(lines []string, date string, at time.Time) time.Duration {
	sent, err := http.ParseTime(date)
	if err != nil {
		sent = at
	}
	lifetime := maxDelta
	for _, line := range lines {
		expires, err := http.ParseTime(line)
		if err != nil {
			return 0
		}
		lifetime = min(lifetime, expires.Sub(sent))
	}
	return max(0, lifetime)
}

// age returns the Age of a response. RFC 9111 section 4.2.3 would also use the time since
// its Date, but if the origin's clock is slow, that makes each response look old, and a
// fresh feed would be polled at the floor.
func age(header http.Header) time.Duration {
	// RFC 9111 section 5.1: the first member of a list counts, and is ignored if it is invalid.
	first, _, _ := strings.Cut(header.Get("Age"), ",")
	seconds, _ := deltaSeconds(strings.Trim(first, " \t"))
	return seconds
}
