// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache"
)

// model is what a store should be: two maps.
type model struct {
	t       *rapid.T
	ctx     context.Context
	s       cache.Store
	base    int // the first feed of this run: each has its own, in one store
	records map[cache.ID]cache.Record
	bodies  map[cache.ID]cache.Body
	latest  time.Time
}

// feeds of one run. Few, so that operations meet.
const modelFeeds = 3

// likeTheModel compares the store with the model after each step of random walks.
func likeTheModel(t *testing.T, s cache.Store) {
	run := 0
	var latest time.Time
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			t: rt, ctx: t.Context(), s: s, base: run * modelFeeds, latest: latest,
			records: make(map[cache.ID]cache.Record), bodies: make(map[cache.ID]cache.Body),
		}
		run++
		defer func() { latest = m.latest }()
		defer m.clear()
		rt.Repeat(map[string]func(*rapid.T){
			"reserve": m.reserve,
			"commit":  m.commit,
			"forget":  m.forget,
			"":        m.check,
		})
	})
}

// clear removes the feeds of this run, so that scans stay short.
func (m *model) clear() {
	ids := slices.Collect(maps.Keys(m.records))
	if err := m.s.Forget(m.ctx, ids); err != nil {
		m.t.Errorf("Forget: %v", err)
	}
}

// pick draws a feed and a token that is the right one, or close to it.
func (m *model) pick() (id cache.ID, url string, token uint64) {
	id, url = feed(m.base + rapid.IntRange(0, modelFeeds-1).Draw(m.t, "feed"))
	token = m.records[id].Token
	if rapid.IntRange(0, 3).Draw(m.t, "wrong token") == 0 {
		token = rapid.Uint64Range(0, token+1).Draw(m.t, "token")
	}
	return id, url, token
}

// instant draws a time; its fractions of a millisecond are often zero.
func (m *model) instant(name string) time.Time {
	seconds := rapid.Int64Range(0, 1e6).Draw(m.t, name)
	nanos := rapid.SampledFrom([]time.Duration{0, 1, time.Millisecond, 999_999_999}).Draw(m.t, name+" fraction")
	return start.Add(time.Duration(seconds)*time.Second + nanos)
}

// roundUp is t to the next millisecond.
func roundUp(t time.Time) time.Time {
	whole := t.Truncate(time.Millisecond)
	if whole.Before(t) {
		whole = whole.Add(time.Millisecond)
	}
	return whole
}

func (m *model) advance(now time.Time) {
	if now = roundUp(now); now.After(m.latest) {
		m.latest = now
	}
}

func (m *model) reserve(t *rapid.T) {
	claims := make([]cache.Claim, rapid.IntRange(1, 4).Draw(t, "claims"))
	want := make([]cache.Grant, len(claims))
	asked := make(map[cache.ID]bool)
	var now time.Time
	for i := range claims {
		id, url, token := m.pick()
		claims[i] = cache.Claim{ID: id, URL: url, Token: token, Now: m.instant("now"), Next: m.instant("next")}
		if claims[i].Now.After(now) {
			now = claims[i].Now
		}
	}
	granted := false
	for i, c := range claims {
		r, known := m.records[c.ID]
		if !asked[c.ID] && r.Token == c.Token {
			if !known {
				r = cache.Record{ID: c.ID, URL: c.URL}
			}
			r.Token++
			r.Next = roundUp(c.Next)
			m.records[c.ID] = r
			want[i].OK, granted = true, true
		}
		asked[c.ID] = true
		want[i].Schedule = r.Schedule
	}
	if granted {
		m.advance(now)
	}
	got, err := m.s.Reserve(m.ctx, claims)
	if err != nil || len(got) != len(want) {
		t.Fatalf("Reserve = %d grants, %v", len(got), err)
	}
	for i := range got {
		if got[i].OK != want[i].OK || !sameSchedule(got[i].Schedule, want[i].Schedule) {
			t.Fatalf("grant %d = %+v, want %+v", i, got[i], want[i])
		}
	}
}

func (m *model) commit(t *rapid.T) {
	id, _, token := m.pick()
	o := cache.Outcome{
		ID: id, Token: token, Now: m.instant("now"), Next: m.instant("next"),
		Memo: rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "memo"),
	}
	if rapid.Bool().Draw(t, "new body") {
		o.Body = &cache.Body{
			Version: rapid.Uint64Range(1, 9).Draw(t, "version"),
			Coded: rapid.MapOfN(rapid.SampledFrom([]string{"", "gzip", "br"}),
				rapid.SliceOfN(rapid.Byte(), 0, 50), 0, 3).Draw(t, "codings"),
		}
	}
	r, known := m.records[id]
	if err := m.s.Commit(m.ctx, o); !known || r.Token != token {
		if !errors.Is(err, cache.ErrFenced) {
			t.Fatalf("Commit: error %v, want %v", err, cache.ErrFenced)
		}
		return
	} else if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	r.Next, r.Memo = roundUp(o.Next), o.Memo
	if o.Body != nil {
		r.Version = o.Body.Version
		m.bodies[id] = *o.Body
	}
	m.records[id] = r
	m.advance(o.Now)
}

func (m *model) forget(*rapid.T) {
	id, _, _ := m.pick()
	if err := m.s.Forget(m.ctx, []cache.ID{id}); err != nil {
		m.t.Fatalf("Forget: %v", err)
	}
	delete(m.records, id)
	delete(m.bodies, id)
}

// check compares everything that can be read.
func (m *model) check(t *rapid.T) {
	scanned := make(map[cache.ID]cache.Record)
	if err := m.s.Scan(m.ctx, func(r cache.Record) error { scanned[r.ID] = r; return nil }); err != nil {
		t.Fatalf("Scan: %v", err)
	}
	ours := make(map[cache.ID]cache.Record)
	for n := range modelFeeds {
		id, _ := feed(m.base + n)
		if r, ok := scanned[id]; ok {
			ours[id] = r
		}
		if err := m.checkFeed(id); err != nil {
			t.Fatalf("feed %d: %v", n, err)
		}
	}
	if !maps.EqualFunc(ours, m.records, sameRecord) {
		t.Fatalf("Scan visited %+v, want %+v", ours, m.records)
	}
	if latest, err := m.s.Latest(m.ctx); err != nil || !latest.Equal(m.latest) {
		t.Fatalf("Latest = %v, %v, want %v", latest, err, m.latest)
	}
}

func (m *model) checkFeed(id cache.ID) error {
	want, known := m.records[id]
	r, err := m.s.Load(m.ctx, id)
	if known && (err != nil || !sameRecord(r, want)) || !known && !errors.Is(err, cache.ErrNoRecord) {
		return fmt.Errorf("loaded %+v, %w, want %+v", r, err, want)
	}
	body, stored := m.bodies[id]
	b, err := m.s.Body(m.ctx, id)
	if stored && (err != nil || !sameBody(b, body)) || !stored && !errors.Is(err, cache.ErrNoBody) {
		return fmt.Errorf("body is %+v, %w, want %+v", b, err, body)
	}
	return nil
}
