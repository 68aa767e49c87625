// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

// Steps of a walk that keep feeds or drop them.

import (
	"errors"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/store"
)

func (m *model) touch(t *rapid.T) {
	asked := make(map[store.ID]store.Asked)
	for range rapid.IntRange(0, 3).Draw(t, "feeds") {
		id, _ := m.pick(t)
		asked[id] = store.Asked{Ago: steps(t, "ago"), Own: rapid.Bool().Draw(t, "own")}
		if rapid.Bool().Draw(t, "by a name") {
			asked[id] = store.Asked{Ago: asked[id].Ago, Own: asked[id].Own, By: []store.Owner{store.OwnerOf(store.KindToken, "")}}
		}
		if rapid.IntRange(0, 3).Draw(t, "by") == 0 {
			asked[id] = store.Asked{Ago: -1} // no reader has asked
		}
	}
	if err := m.s.Touch(t.Context(), asked); err != nil {
		t.Fatalf("Touch: %v", err)
	}
	for id, a := range asked {
		f := m.feeds[id]
		if f != nil {
			f.Configured = f.Configured && f.configuredUntil > m.now
		}
		if f != nil && a.Ago >= 0 {
			f.asked, f.sleeps = max(f.asked, m.now-a.Ago), 0
			f.touches++
			f.named, f.own = f.named || len(a.By) > 0, f.own || a.Own
		}
	}
}

func (m *model) forget(t *rapid.T) {
	id, _ := m.pick(t)
	want := error(nil)
	if m.feeds[id] == nil {
		want = store.ErrNoRecord
	}
	rank := m.rank(t, id)
	if err := m.s.Forget(t.Context(), id); !errors.Is(err, want) {
		t.Fatalf("Forget: error %v, want %v", err, want)
	}
	if m.feeds[id] != nil {
		m.forgotten(id, rank)
	}
}

// forgotten removes a feed, of which its last poll is remembered.
func (m *model) forgotten(id store.ID, rank store.Rank) {
	f := m.feeds[id]
	delete(m.feeds, id)
	until := max(m.now, f.earliest, f.asked+24*time.Hour-time.Minute, f.polled+f.Hold)
	if f.Version == 0 && rank == store.RankPublicNew {
		until = min(until, m.now+24*time.Hour-time.Minute)
	}
	f.hold, f.until = f.Hold, max(f.until, until, m.now+15*time.Minute)
}

func (m *model) sweep(t *rapid.T) {
	q := store.SweepQuery{Idle: length(t, "idle"), Unread: length(t, "unread")}
	want := make(map[store.ID]bool)
	may := make(map[store.ID]bool)
	ranks := make(map[store.ID]store.Rank)
	for id, f := range m.feeds {
		quiet := m.now - wanted(f)
		f.Configured = f.Configured && f.configuredUntil > m.now
		ranks[id] = m.rank(t, id)
		unread := f.Version == 0 && !f.Configured && (f.next <= m.now || f.earliest > m.now || f.next == store.Ended)
		if f.Configured {
			continue
		}
		idle := q.Idle
		if f.Version == 0 {
			idle = min(idle, 3*24*time.Hour)
		}
		if !unread && quiet >= idle || unread && quiet >= q.Unread {
			want[id] = true
		}
		if f.touches >= 3 { // it may be established: that depends on when its days begin
			may[id] = want[id] || quiet >= idle
			delete(want, id)
		}
	}
	for id, u := range m.urls { // rows go before feeds do
		if m.feeds[id] == nil && u.until < m.now {
			*u = url{polled: never, until: never, touches: u.touches, version: u.version}
		}
	}
	got, err := m.s.Sweep(t.Context(), q)
	if err != nil {
		t.Fatalf("Sweep: %v", err)
	}
	for _, id := range got {
		if !want[id] && !may[id] {
			t.Fatalf("swept %x, want %x", got, slices.Collect(maps.Keys(want)))
		}
		delete(want, id)
		m.forgotten(id, ranks[id])
	}
	if len(want) > 0 {
		t.Fatalf("swept %x, but not %x", got, slices.Collect(maps.Keys(want)))
	}
}

func (m *model) restore(t *rapid.T) {
	id, url := m.pick(t)
	f := &known{url: m.url(id), refused: never, configuredUntil: m.now + configuredFor}
	f.Record = store.Record{
		ID: id, URL: url, Hold: length(t, "hold"), State: store.StateFresh, Host: m.drawHost(t),
		In: length(t, "in"), Polled: 10*unit + steps(t, "polled"), Asked: steps(t, "asked"),
		PollState: m.text(t, "facts"), FeedState: m.text(t, "memo"), Configured: rapid.Bool().Draw(t, "configured"),
	}
	if rapid.IntRange(0, 3).Draw(t, "ended") == 0 {
		f.In = store.Ended
	}
	f.next, f.asked = m.now+f.In, m.now-f.Asked
	if f.In == store.Ended {
		f.next = store.Ended
	}
	if rapid.Bool().Draw(t, "with body") {
		f.body = m.newBody(t, id)
		f.Version, f.version = f.body.Version, f.body.Version
	}
	saved := store.Saved{Record: f.Record, Body: f.body, New: rapid.Bool().Draw(t, "new")}
	if err := m.s.Restore(t.Context(), []store.Saved{saved}); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	old := m.feeds[id]
	if old != nil && saved.New {
		m.leaveAlone(old, f.Record)
		return
	}
	if old != nil {
		f.next, f.asked, f.named, f.own, f.refused = max(f.next, old.next), max(f.asked, old.asked), old.named, old.own, old.refused
	} else {
		f.next = max(f.next, f.polled+max(f.Hold, f.hold))
	}
	f.next, f.polled = max(f.next, f.earliest), max(f.polled, m.now-f.Polled)
	m.feeds[id] = f
	// Whether the store gives it a token is its own affair.
	records, err := m.s.Lookup(t.Context(), []store.ID{id})
	if err != nil || len(records) != 1 || m.tokens[records[0].Token] {
		t.Fatalf("restored %+v, %v", records, err)
	}
	if f.Token = records[0].Token; f.Token != 0 {
		m.tokens[f.Token] = true
	}
}

// leaveAlone restores a record that is there already. It may be configured then, as though asked for now.
func (m *model) leaveAlone(f *known, r store.Record) {
	if r.Configured {
		if !f.Configured {
			f.asked, f.sleeps = m.now, 0
			f.touches++
		}
		if f.configure(m.now) {
			f.Host = r.Host
		}
	}
}
