// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Traffic counts the requests of readers, and the polls that they caused.
type Traffic struct {
	Requests int64 `json:"requests"` // that were answered with a feed or a 304
	Polls    int64 `json:"polls"`
	Served   int64 `json:"served_bytes"`  // to readers
	Fetched  int64 `json:"fetched_bytes"` // from origins
}

// Add adds other traffic.
func (t *Traffic) Add(o Traffic) {
	t.Requests, t.Polls = t.Requests+o.Requests, t.Polls+o.Polls
	t.Served, t.Fetched = t.Served+o.Served, t.Fetched+o.Fetched
}

// Spared is how many requests did not reach an origin.
func (t Traffic) Spared() int64 { return max(t.Requests-t.Polls, 0) }

// SparedBytes is how many bytes origins did not have to send.
func (t Traffic) SparedBytes() int64 { return max(t.Served-t.Fetched, 0) }

// Savings is the traffic that origins were spared.
type Savings struct {
	Total   Traffic         `json:"total"`
	Days    []DayTraffic    `json:"days"` // the oldest first, without gaps, the last one unfinished
	Origins []OriginTraffic `json:"origins"`
	Earlier bool            `json:"-"` // Total counts more than Days
}

// DayTraffic is the traffic of a day.
type DayTraffic struct {
	Day time.Time `json:"day"` // its beginning, GMT
	Traffic
}

// OriginTraffic is the traffic of feeds of one origin.
type OriginTraffic struct {
	Origin feedurl.Redacted `json:"origin"` // https://example.com
	Traffic
}

// Sentence describes what was spared: sites or, for the publisher of shielded feeds, their own.
func (s Savings) Sentence(shield bool) string {
	if s.Total.Requests == 0 {
		return "No reader has asked for a feed yet."
	}
	spared := "Sites were spared"
	if shield {
		spared = "Your site was spared"
	}
	what := Count(s.Total.Spared(), "request")
	switch n := s.Total.SparedBytes(); {
	case n > 0 && s.Total.Spared() == 0:
		what = Size(n)
	case n > 0:
		what += " and " + Size(n)
	}
	return spared + " " + what + " in " + either(s.Earlier, "more than ", "") + Count(int64(max(len(s.Days), 1)), "day") + "."
}
