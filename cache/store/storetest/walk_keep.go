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
		a := store.Asked{Ago: steps(t, "ago"), Own: rapid.Bool().Draw(t, "own")}
		if rapid.Bool().Draw(t, "by a name") {
			a.By = []store.Owner{store.OwnerOf(store.KindNamed, "")}
		}
		if rapid.IntRange(0, 3).Draw(t, "by") == 0 {
			a = store.Asked{Ago: -1} // no reader has asked
		}
		if rapid.Bool().Draw(t, "poke") {
			a.Poke = &store.Poke{In: length(t, "poke in"), Floor: rapid.SampledFrom([]time.Duration{0, modelFloor}).Draw(t, "floor"), Patient: rapid.Bool().Draw(t, "patient")}
		}
		asked[id] = a
	}
	if err := m.s.Touch(t.Context(), asked); err != nil {
		t.Fatalf("Touch: %v", err)
	}
	for id, a := range asked {
		f := m.feeds[id]
		if f == nil {
			continue
		}
		if a.Ago >= 0 {
			f.asked, f.own = max(f.asked, m.now-a.Ago), f.own || a.Own
		}
		if p := a.Poke; p != nil {
			poke := max(m.now+p.In, f.polled+p.Floor)
			if p.Patient && f.State == store.StateFailing {
				poke = max(poke, f.next)
			}
			f.poke = min(f.poke, poke)
		}
	}
}

func (m *model) forget(t *rapid.T) {
	id, _ := m.pick(t)
	want := error(nil)
	if m.feeds[id] == nil {
		want = store.ErrNoRecord
	}
	owner := m.owner(t, id)
	if err := m.s.Forget(t.Context(), id); !errors.Is(err, want) {
		t.Fatalf("Forget: error %v, want %v", err, want)
	}
	if m.feeds[id] != nil {
		m.forgotten(id, owner)
	}
}

// forgotten removes a feed, of which its last poll and decision are remembered.
func (m *model) forgotten(id store.ID, owner store.Owner) {
	f := m.feeds[id]
	delete(m.feeds, id)
	if f.decision = f.next; f.next == store.Ended {
		f.decision = f.polled + 7*24*time.Hour
	}
	until := max(m.now, f.earliest, f.asked+24*time.Hour-time.Minute, f.decision)
	if f.Version == 0 && (owner == 0 || owner == store.Any) {
		until = min(until, m.now+24*time.Hour-time.Minute)
	}
	f.until = max(f.until, until, m.now+15*time.Minute)
}

func (m *model) sweep(t *rapid.T) {
	q := store.SweepQuery{Idle: length(t, "idle"), Unread: length(t, "unread")}
	want := make(map[store.ID]bool)
	owners := make(map[store.ID]store.Owner)
	for id, f := range m.feeds {
		idle := q.Idle
		if f.Version == 0 {
			idle = min(idle, q.Unread)
		}
		if m.now-used(f) >= idle && !m.configured(f) {
			want[id] = true
		}
	}
	for id, u := range m.urls { // rows go before feeds do
		if m.feeds[id] == nil && u.until < m.now {
			*u = url{polled: never, until: never, decision: never, refused: never, version: u.version}
		}
	}
	_, err := m.s.Sweep(t.Context(), store.SweepQuery{}) // decides for whom feeds count
	for id := range m.feeds {
		owners[id] = m.owner(t, id)
	}
	got, failed := m.s.Sweep(t.Context(), q)
	if err != nil || failed != nil {
		t.Fatalf("Sweep: %v, %v", err, failed)
	}
	for _, id := range got {
		if !want[id] {
			t.Fatalf("swept %x, want %x", got, slices.Collect(maps.Keys(want)))
		}
		delete(want, id)
		m.forgotten(id, owners[id])
	}
	if len(want) > 0 {
		t.Fatalf("swept %x, but not %x", got, slices.Collect(maps.Keys(want)))
	}
}

func (m *model) restore(t *rapid.T) {
	id, url := m.pick(t)
	f := &modelFeed{url: m.url(id), poke: store.Ended}
	f.Record = store.Record{
		ID: id, URL: url, State: store.StateFresh, Site: m.drawHost(t).Site, First: -1,
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
	saved := store.Saved{Record: f.Record, Body: f.body, New: rapid.Bool().Draw(t, "new"), Hold: length(t, "hold")}
	if err := m.s.Restore(t.Context(), []store.Saved{saved}); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	old := m.feeds[id]
	if old != nil && saved.New {
		m.leaveAlone(old, f.Record)
		return
	}
	if old != nil {
		f.next, f.asked, f.own, f.poke = max(f.next, old.next), max(f.asked, old.asked), old.own, old.poke
		f.configuredUntil = old.configuredUntil
	} else {
		f.next = max(f.next, f.polled+saved.Hold, f.decision)
	}
	if saved.Configured {
		f.configure(m.now)
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
func (m *model) leaveAlone(f *modelFeed, r store.Record) {
	if was := m.configured(f); r.Configured && f.configure(m.now) && !was {
		f.asked = m.now
	}
}
