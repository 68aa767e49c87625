// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"errors"
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/store"
)

// model is what a store should be: a few maps and a clock. All that is slept is a
// multiple of unit, and all that is waited for is off by a third of it, so that a
// clock that goes on by itself a little makes no difference.
type model struct {
	h        Harness
	s        Handle
	now      time.Duration
	feeds    map[store.ID]*modelFeed
	sites    map[string]*siteOf
	pauses   map[scope]paused
	urls     map[store.ID]*url
	tokens   map[store.Token]bool
	counters map[string]string
	secret   []byte
}

// url is what counts of a URL, whether its feed is known or forgotten.
type url struct {
	polled   time.Duration // the last poll
	earliest time.Duration // its origin wants no poll before
	refused  time.Duration // its poll was refused last
	until    time.Duration // all this is remembered if the feed is forgotten
	decision time.Duration // of a feed that was forgotten; never if there is none
	version  uint64        // the highest so far
}

func (m *model) url(id store.ID) *url {
	if m.urls[id] == nil {
		m.urls[id] = &url{polled: never, until: never, decision: never, refused: never}
	}
	return m.urls[id]
}

// modelFeed is a feed, with moments in place of durations.
type modelFeed struct {
	store.Record
	*url
	next, asked     time.Duration
	poke            time.Duration // it is wanted then; store.Ended if it is not
	own             bool          // a reader has asked for it at its own address
	configuredUntil time.Duration
	body            *store.Body
}

const (
	unit       = 12 * time.Minute // of which a third is more than the clock may go on by itself in one walk
	modelFeeds = 5
	modelFloor = 2*unit + unit/3 // longer than the row of a feed that was forgotten stays in any case
	never      = -time.Duration(1 << 60)
)

func (m *model) start(h store.Host) {
	if h.Site != "" {
		m.site(h.Site).started = m.now
	}
}

// granted notes a grant and checks that it is one.
func (m *model) granted(t *rapid.T, f *modelFeed, l store.Lease, c store.Claim) {
	if l.Token == 0 || m.tokens[l.Token] {
		t.Fatalf("token %d again, or none", l.Token)
	}
	m.tokens[l.Token] = true
	if l.Poked != (f.poke != store.Ended) {
		t.Fatalf("the grant is poked: %v, want %v", l.Poked, f.poke != store.Ended)
	}
	f.Token, f.polled, f.next, f.poke = l.Token, m.now, m.now+c.Hold, store.Ended
	m.start(c.Host)
}

const configuredFor = 48 * time.Hour

// configure makes a feed one that is configured. It reports whether that changes anything.
func (f *modelFeed) configure(now time.Duration) (changed bool) {
	if f.configuredUntil > now+configuredFor/2 {
		return false
	}
	f.configuredUntil = now + configuredFor
	return true
}

func (m *model) configured(f *modelFeed) bool { return f.configuredUntil > m.now }

// wanted is when a poke has a feed polled.
func (f *modelFeed) wanted() time.Duration {
	if f.poke == store.Ended {
		return f.poke
	}
	return max(f.poke, f.earliest)
}

// in is the time to a moment.
func (m *model) in(at time.Duration) time.Duration {
	if at == store.Ended {
		return at
	}
	return at - m.now
}

// record is the feed as the store should return it.
func (m *model) record(f *modelFeed) store.Record {
	r := f.Record
	r.Configured, r.Renew = m.configured(f), m.configured(f) && f.configuredUntil <= m.now+configuredFor/2
	r.Poked = f.wanted() < f.next || f.wanted() <= m.now
	r.In, r.Polled, r.Asked, r.NotBefore = m.in(min(f.next, f.wanted())), m.ago(f.polled), m.ago(f.asked), max(0, f.earliest-m.now)
	return r
}

func (m *model) ago(at time.Duration) time.Duration {
	if at == never {
		return -1
	}
	return m.now - at
}

func (m *model) same(t *rapid.T, got store.Record, f *modelFeed) {
	want := m.record(f)
	if f.next != store.Ended && f.wanted() > m.now && nearInAWalk(f.wanted(), f.next) {
		want.Poked = got.Poked // the clock has gone on by itself between the two
	}
	if !sameRecord(got, want) {
		t.Fatalf("record is\n%+v, want\n%+v", got, want)
	}
}

// used is when a reader asked for a feed last, or else when it was polled.
func used(f *modelFeed) time.Duration {
	if f.asked != never {
		return f.asked
	}
	return f.polled
}

// check compares everything that can be read.
func (m *model) check(t *rapid.T) {
	records, err := m.s.Records(t.Context(), store.ID{}, 100, false)
	if err != nil || len(records) != len(m.feeds) {
		t.Fatalf("Records = %d, %v, want %d", len(records), err, len(m.feeds))
	}
	totals := store.Totals{Feeds: make(map[store.State]int64)}
	var after store.ID
	for _, r := range records {
		f, ok := m.feeds[r.ID]
		if !ok || bytes.Compare(r.ID[:], after[:]) <= 0 {
			t.Fatalf("Records has %+v", r)
		}
		after = r.ID
		m.same(t, r, f)
		totals.Feeds[f.State]++
		if f.State == store.StateCold && f.Version == 0 && !m.configured(f) {
			totals.Unread++
		}
		body, err := store.ReadBody(t.Context(), m.s, r.ID)
		if f.body == nil {
			if !errors.Is(err, store.ErrNoBody) {
				t.Fatalf("Body: error %v, want %v", err, store.ErrNoBody)
			}
			continue
		}
		totals.Bytes += int64(len(f.body.Data))
		if err != nil || !sameBody(body, *f.body) {
			t.Fatalf("Body = %+v, %v, want %+v", body, err, f.body)
		}
	}
	got, err := m.s.Totals(t.Context())
	if err != nil || got.Unread != totals.Unread || got.Bytes != totals.Bytes || got.Overdue < 0 || !maps.Equal(got.Feeds, totals.Feeds) {
		t.Fatalf("Totals = %+v, %v, want %+v", got, err, totals)
	}
	m.samePauses(t)
}

// saveCounters replaces the statistics of a node, and leaves those of the other alone.
func (m *model) saveCounters(t *rapid.T) {
	node, data := rapid.SampledFrom([]string{"one", "two"}).Draw(t, "node"), m.text(t, "counters")
	if err := m.s.SaveCounters(t.Context(), node, data); err != nil {
		t.Fatalf("SaveCounters: %v", err)
	}
	if m.counters[node] = string(data); len(data) == 0 {
		delete(m.counters, node)
	}
	m.sameCounters(t)
}

func (m *model) sameCounters(t *rapid.T) {
	counters, err := m.s.Counters(t.Context())
	got := make(map[string]string)
	for node, data := range counters {
		got[node] = string(data)
	}
	if err != nil || !maps.Equal(got, m.counters) {
		t.Fatalf("Counters = %q, %v, want %q", got, err, m.counters)
	}
	secret, err := m.s.Secret(t.Context())
	if m.secret == nil {
		m.secret = secret
	}
	if err != nil || !bytes.Equal(secret, m.secret) {
		t.Fatalf("Secret = %x, %v, and then %x", m.secret, err, secret)
	}
}

// sameRecord compares records; durations are near each other.
func sameRecord(a, b store.Record) bool {
	return a.ID == b.ID && a.URL == b.URL && a.Token == b.Token && nearInAWalk(a.In, b.In) && a.Poked == b.Poked &&
		nearAgo(a.Polled, b.Polled) && nearAgo(a.Asked, b.Asked) && nearInAWalk(a.NotBefore, b.NotBefore) && a.Version == b.Version && a.State == b.State &&
		bytes.Equal(a.PollState, b.PollState) && bytes.Equal(a.FeedState, b.FeedState) && a.Site == b.Site && a.Points == b.Points && a.Configured == b.Configured && a.Renew == b.Renew
}

// nearAgo compares times since something; those that are negative are never.
func nearAgo(a, b time.Duration) bool {
	return a < 0 && b < 0 || a >= 0 && b >= 0 && nearInAWalk(a, b)
}

// nearInAWalk compares durations. The clock of a store may go on by two minutes in a walk, on a machine
// that is busy.
func nearInAWalk(a, b time.Duration) bool { return a == b || max(a-b, b-a) < walkSlack }

const walkSlack = 2 * time.Minute
