// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Trouble is what keeps the poller from its work.
type Trouble struct {
	Offline   bool   `json:"offline"`          // no host can be reached
	StoreAway bool   `json:"store_away"`       // the store refuses writes, so nothing is polled
	Outage    string `json:"outage,omitempty"` // the store's error
	DiskOver  int64  `json:"disk_over_bytes"`  // by which configured feeds exceed the budget
	DiskShort bool   `json:"disk_short"`       // the disk is nearly full, so new feeds are not stored

	// Slow are the sites whose pace does not fit their feeds, as was found in the last hour.
	Slow []SlowSite `json:"slow_sites,omitempty"`

	OfflineSince   time.Time `json:"offline_since,omitzero"`
	StoreAwaySince time.Time `json:"store_away_since,omitzero"`
	StoreDamaged   time.Time `json:"store_damaged,omitzero"` // when its file was found damaged, if that was in the last week

	// Proxies are addresses that send X-Forwarded-For for several clients, of a shield with
	// defend. Caddy's trusted_proxies does not name them.
	Proxies []netip.Addr `json:"untrusted_proxies,omitempty"`
}

// Notices are sentences about the trouble, with times in a location. There are none if all is well.
func (t Trouble) Notices(now time.Time, in *time.Location) (list []Reason) {
	add := func(since time.Time, before, format string, args ...any) {
		notice := Reason{{Text: before}, {Text: fmt.Sprintf(format, args...)}}
		if !since.IsZero() {
			notice = slices.Insert(notice, 1, Part{Text: " since "}, Part{Text: clock(since, now, in), At: since})
		}
		list = append(list, notice)
	}
	if t.StoreAway {
		add(t.StoreAwaySince, "The store cannot be reached", "%s, so nothing is polled; readers get what is in memory. The log says more.", bracketed(t.Outage))
	}
	if !t.StoreDamaged.IsZero() {
		add(t.StoreDamaged, "Stored feeds are missing", ", as the file of the store was damaged: each is fetched again when its min_interval has passed. The log says more.")
	}
	if t.Offline {
		add(t.OfflineSince, "No site can be reached", "; readers get what is stored. Polls go on when the network is back.")
	}
	if t.DiskOver > 0 {
		add(time.Time{}, "The configured feeds take ", "%s more than the line disk allows, so no other feed is stored.", Size(t.DiskOver))
	}
	if t.DiskShort {
		add(time.Time{}, "The disk is nearly full", ", so new feeds are not stored: they are served from memory. What is stored stays.")
	}
	for _, s := range t.Slow {
		add(time.Time{}, s.Sentence(), "")
	}
	for _, proxy := range t.Proxies {
		add(time.Time{}, proxy.String(), " sends the requests of many readers, and Caddy does not trust it as a proxy. If it is yours, write trusted_proxies static %s and trusted_proxies_strict "+
			"into the global option servers. Until then its readers share one address, and defend may refuse some of them.", proxy)
	}
	return list
}

// Summary describes all feeds together.
type Summary struct {
	Feeds   map[State]int64 `json:"feeds"`
	Overdue int64           `json:"overdue"`
	Memory  int64           `json:"memory_bytes"`
	Disk    int64           `json:"disk_bytes"` // in use
	Polls   int             `json:"polls"`      // in flight
	Trouble
}

func (s *Summary) add(f *Feed, now time.Time) {
	s.Feeds[f.State]++
	if !f.NextPoll.IsZero() && !f.NextPoll.After(now) {
		s.Overdue++
	}
}

// StateCount is how many feeds are in a state.
type StateCount struct {
	State State
	Count int64
	Text  string // "2 are failing"
}

// States counts the feeds in each state that has any, without unread addresses.
func (s Summary) States() (list []StateCount) {
	for _, state := range States {
		n := s.Feeds[state]
		if n == 0 || state == StateUnread {
			continue
		}
		text := fmt.Sprintf("%s %s %s", humanize.Comma(n), Plural(n, "is", "are"), state)
		switch state {
		case StateWaiting:
			text += " as asked"
		case StateGone:
			text += " for good"
		}
		list = append(list, StateCount{state, n, text})
	}
	return list
}

// Unread counts the addresses that readers asked for and that never gave a feed.
func (s Summary) Unread() int64 { return s.Feeds[StateUnread] }

// Total counts the feeds: "214 feeds".
func (s Summary) Total() string {
	var total int64
	for _, in := range s.States() {
		total += in.Count
	}
	return Count(total, "feed")
}

// Sentence describes the feeds: "214 feeds. 2 are failing, 3 are waiting as asked, 209
// are fresh." It leaves out unread addresses.
func (s Summary) Sentence() string {
	states := s.States()
	switch {
	case len(states) == 0:
		return "No feeds yet."
	case len(states) == 1 && states[0].State == StateFresh:
		return s.Total() + ", all fresh."
	}
	parts := make([]string, 0, len(states))
	for _, in := range states {
		parts = append(parts, in.Text)
	}
	return s.Total() + ". " + strings.Join(parts, ", ") + "."
}

// Headline says what happens next with a feed, at the time now. The state precedes it, and
// [Feed.Explain] says why.
func (f *Feed) Headline(now time.Time) string {
	switch {
	case f.State == StateUnread:
		return "It never gave a feed."
	case f.State == StateGone && f.NextPoll.IsZero(): // one that points to a feed that is gone is polled
		return "It is not polled any more."
	case f.NextPoll.IsZero():
		return "No poll is planned."
	case !f.NextPoll.After(now):
		return "It is due for a poll."
	}
	return "The next poll is " + Until(f.NextPoll, now) + "."
}

// Uptime is the share of polls that were answered: "97 %". It is "none" if none was sent.
func Uptime(polls []Poll) string {
	var sent, answered int
	for _, p := range polls {
		switch p.Result {
		case ResultUnsent:
		case ResultFailed, ResultGone:
			sent++
		default:
			sent, answered = sent+1, answered+1
		}
	}
	if sent == 0 {
		return "none"
	}
	return Percent(float64(answered) / float64(sent))
}

// Last names polls by their number, to follow their share: "the last 32 polls".
func Last(polls []Poll) string {
	if len(polls) == 1 {
		return "1 poll"
	}
	return "the last " + Count(int64(len(polls)), "poll")
}
