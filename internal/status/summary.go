// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Summary describes all feeds together.
type Summary struct {
	Feeds     map[State]int64 `json:"feeds"`
	Overdue   int64           `json:"overdue"`
	Memory    int64           `json:"memory_bytes"`
	Disk      int64           `json:"disk_bytes"`       // in use
	DiskOver  int64           `json:"disk_over_bytes"`  // by which configured feeds exceed the budget
	DiskShort bool            `json:"disk_short"`       // the disk is nearly full, so the store does not grow
	Polls     int             `json:"polls"`            // in flight
	Offline   bool            `json:"offline"`          // no host can be reached
	StoreAway bool            `json:"store_away"`       // the store refuses writes, so nothing is polled
	Outage    string          `json:"outage,omitempty"` // the store's error

	OfflineSince   time.Time `json:"offline_since,omitzero"`
	StoreAwaySince time.Time `json:"store_away_since,omitzero"`

	// Proxies are addresses that send X-Forwarded-For for several clients, of a shield with
	// defend. Caddy's trusted_proxies does not name them.
	Proxies []netip.Addr `json:"untrusted_proxies,omitempty"`
}

// Sentence describes the feeds: "214 feeds. 2 are failing, 3 are waiting as asked, 209
// are fresh." It leaves out unread addresses.
func (s Summary) Sentence() string {
	var total int64
	var parts []string
	for _, state := range States {
		n := s.Feeds[state]
		if n == 0 || state == StateUnread {
			continue
		}
		total += n
		text := fmt.Sprintf("%s %s %s", humanize.Comma(n), Plural(n, "is", "are"), state)
		switch state {
		case StateWaiting:
			text += " as asked"
		case StateGone:
			text += " for good"
		}
		parts = append(parts, text)
	}
	switch {
	case total == 0:
		return "No feeds yet."
	case s.Feeds[StateFresh] == total:
		return Count(total, "feed") + ", all fresh."
	}
	return Count(total, "feed") + ". " + strings.Join(parts, ", ") + "."
}

// Headline says what happens next with a feed, at the time now. The state precedes it.
func (f *Feed) Headline(now time.Time) string {
	next := "The next poll is " + Until(f.NextPoll, now) + "."
	switch {
	case f.State == StateGone:
		return "It is not polled any more."
	case f.State == StateUnread:
		return "It never gave a feed."
	case f.NextPoll.IsZero():
		return "No poll is planned."
	case f.State == StateDue, !f.NextPoll.After(now):
		return "It is due for a poll."
	case f.State == StateFailing && f.Failures > 1:
		return fmt.Sprintf("The last %d polls failed. ", f.Failures) + next
	case f.State == StateFailing:
		return "The last poll failed. " + next
	case f.State == StateWaiting:
		return "The site has asked for fewer requests. " + next
	}
	return next
}
