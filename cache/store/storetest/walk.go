// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/store"
)

// likeTheModel compares the store with the model after each step of random walks.
func likeTheModel(t *testing.T, begin func(*testing.T) Harness) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &model{
			h: begin(t), feeds: make(map[store.ID]*modelFeed), sites: make(map[string]*siteOf), urls: make(map[store.ID]*url),
			pauses: make(map[scope]paused), tokens: make(map[store.Token]bool), counters: make(map[string]string),
		}
		m.s = m.h.Open()
		defer func() { m.s.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"claim":    m.claim,
			"due":      m.due,
			"commit":   m.commit,
			"commit 2": m.commit,
			"touch":    m.touch,
			"forget":   m.forget,
			"sweep":    m.sweep,
			"restore":  m.restore,
			"counters": m.saveCounters,
			"pause":    m.restorePause,
			"reopen":   m.reopen,
			"sleep":    m.sleep,
			"sleep 2":  m.sleep,
			"":         m.check,
		})
	})
}

// steps draws a multiple of unit.
func steps(t *rapid.T, name string) time.Duration {
	return unit * time.Duration(rapid.SampledFrom([]int{0, 1, 2, 3, 10, 20, 500}).Draw(t, name))
}

// length draws a time that no number of steps ends at.
func length(t *rapid.T, name string) time.Duration { return steps(t, name) + unit/3 }

func (m *model) pick(t *rapid.T) (store.ID, string) {
	return Feed(rapid.IntRange(0, modelFeeds-1).Draw(t, "feed"))
}

// host draws a host. Each has its spacing.
func (m *model) drawHost(t *rapid.T) store.Host {
	return rapid.SampledFrom([]store.Host{
		{},
		{Site: "one", Spacing: unit/3 + unit},
		{Site: "three", Spacing: unit / 3},
		{Site: "two", Spacing: unit/3 + 3*unit},
		{Site: "free"},
	}).Draw(t, "host")
}

func (m *model) text(t *rapid.T, name string) []byte {
	return rapid.SampledFrom([][]byte{nil, {}, []byte("a"), []byte("more")}).Draw(t, name)
}

// claim makes some claims and follows some redirects, in one call.
func (m *model) claim(t *rapid.T) {
	var claims []store.Claim
	for range rapid.IntRange(1, 3).Draw(t, "claims") {
		id, url := m.pick(t)
		c := store.Claim{ID: id, URL: url, Host: m.drawHost(t)}
		if rapid.IntRange(0, 4).Draw(t, "hop") == 0 {
			c.Hop, c.New = true, rapid.Bool().Draw(t, "of a new feed")
		} else {
			c.Hold = length(t, "hold")
			c.Configured = rapid.Bool().Draw(t, "configured")
			c.Floor = rapid.SampledFrom([]time.Duration{0, 0, modelFloor, modelFloor + 2*unit}).Draw(t, "floor")
			c.Own = rapid.Bool().Draw(t, "own")
			c.By = rapid.SampledFrom([][]store.Owner{nil, {store.Any}, {store.OwnerOf(store.KindNamed, "")}}).Draw(t, "by")
		}
		claims = append(claims, c)
	}
	leases, err := m.s.Claim(t.Context(), claims)
	if err != nil || len(leases) != len(claims) {
		t.Fatalf("Claim = %d leases, %v", len(leases), err)
	}
	for i, c := range claims {
		if c.Hop {
			m.hop(t, c, leases[i])
		} else {
			m.claimed(t, c, leases[i])
		}
	}
}

// claimed checks the answer to a claim.
func (m *model) claimed(t *rapid.T, c store.Claim, lease store.Lease) {
	f := m.feeds[c.ID]
	if f == nil {
		f = &modelFeed{url: m.url(c.ID), asked: never, poke: store.Ended}
		f.next = max(m.now, f.earliest, f.polled+c.Hold, f.decision)
		f.Record = store.Record{ID: c.ID, URL: c.URL, State: store.StateCold}
		m.feeds[c.ID] = f
	}
	if c.Configured {
		f.configure(m.now)
	}
	f.Site, f.own = c.Host.Site, f.own || c.Own
	due := min(f.next, f.wanted())
	if c.Floor > 0 {
		due = min(due, max(f.earliest, f.polled+c.Floor))
	}
	want, until := m.deny(c.Host, f.Version != 0)
	if due > m.now {
		want, until = store.DeniedNotDue, max(due, until)
	}
	m.answered(t, lease, want, until)
	if want == "" {
		m.granted(t, f, lease, c)
		if len(c.By) > 0 {
			f.asked = m.now
		}
	}
	m.same(t, lease.Record, f)
}

// hop checks the answer to a hop.
func (m *model) hop(t *rapid.T, c store.Claim, lease store.Lease) {
	want, until := m.deny(c.Host, !c.New)
	if u := m.url(c.ID); u.earliest > m.now {
		want, until = store.DeniedPaused, max(until, u.earliest)
	}
	if m.answered(t, lease, want, until); want == "" {
		m.start(c.Host)
	}
	if lease.URL != "" || lease.Token != 0 {
		t.Fatalf("a hop has the record %+v", lease.Record)
	}
}

// answered checks whether a claim was denied, for how long, and why.
func (m *model) answered(t *rapid.T, lease store.Lease, want store.Refusal, until time.Duration) {
	if lease.Denied != want || want != "" && !nearInAWalk(lease.Wait, m.in(until)) || (lease.Pause.For > 0) != (want == store.DeniedPaused) {
		t.Fatalf("the claim is denied %q for %v because of %+v, want %q for %v", lease.Denied, lease.Wait, lease.Pause, want, m.in(until))
	}
}

// due reads what is due, page by page, and what is due because of a poke.
func (m *model) due(t *rapid.T) {
	q := store.DueQuery{Limit: rapid.IntRange(1, modelFeeds+1).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "idle") {
		q.Idle = length(t, "idle after")
	}
	due, poked := make(map[store.ID]bool), make(map[store.ID]bool)
	next, poke := store.Ended, store.Ended // of those that are not due yet
	for id, f := range m.feeds {
		if f.wanted() <= m.now {
			poked[id] = true
		} else {
			poke = min(poke, f.wanted())
		}
		switch {
		case f.poke > m.now && (f.Version == 0 && !m.configured(f) || q.Idle > 0 && m.now-f.asked >= q.Idle):
		case f.next <= m.now:
			due[id] = true
		default:
			next = min(next, f.next)
		}
	}
	for read := true; read; {
		got := m.readDue(t, q, due)
		if read = len(got.Feeds) == q.Limit; read != (got.Wait <= 0) {
			t.Fatalf("%d feeds of %d, and to wait %v", len(got.Feeds), q.Limit, got.Wait)
		}
		q.From = got.To
		if want := m.in(min(next, poke)); !read && !nearInAWalk(got.Wait, want) {
			t.Fatalf("to wait %v, want %v", got.Wait, want)
		}
	}
	q.Poked = true
	if got := m.readDue(t, q, poked); !nearInAWalk(got.Wait, m.in(poke)) {
		t.Fatalf("to wait %v for a poke, want %v", got.Wait, m.in(poke))
	}
	if len(due)+len(poked) > 0 {
		t.Fatalf("not due are %x, not poked %x", slices.Collect(maps.Keys(due)), slices.Collect(maps.Keys(poked)))
	}
}

// readDue reads a page, and removes from want what it has.
func (m *model) readDue(t *rapid.T, q store.DueQuery, want map[store.ID]bool) store.Due {
	got, err := m.s.Due(t.Context(), q)
	if err != nil {
		t.Fatalf("Due: %v", err)
	}
	since := store.Ended
	for _, d := range got.Feeds {
		f := m.feeds[d.ID]
		if f == nil || !want[d.ID] || d.For > since || d.Site != f.Site || d.New != (f.Version == 0) {
			t.Fatalf("Due has %+v, of %+v", d, f)
		}
		since = d.For
		delete(want, d.ID)
	}
	return got
}

// token draws the right token of a feed, mostly.
func (m *model) token(t *rapid.T, f *modelFeed) store.Token {
	if rapid.IntRange(0, 4).Draw(t, "wrong token") == 0 {
		return rapid.SampledFrom([]store.Token{0, 1 << 40}).Draw(t, "token")
	}
	if f == nil {
		return 0
	}
	return f.Token
}

// newBody draws a body with a higher version than any before.
func (m *model) newBody(t *rapid.T, id store.ID) *store.Body {
	return &store.Body{
		Version: m.url(id).version + rapid.Uint64Range(1, 3).Draw(t, "version"),
		Coding:  rapid.SampledFrom([]string{"gzip", "identity"}).Draw(t, "coding"),
		Data:    rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "data"),
	}
}

func (m *model) commit(t *rapid.T) {
	id, _ := m.pick(t)
	f := m.feeds[id]
	o := store.Outcome{
		ID: id, Token: m.token(t, f), Site: m.drawHost(t).Site,
		In:        rapid.SampledFrom([]time.Duration{store.Ended, 0, length(t, "in"), length(t, "in")}).Draw(t, "next"),
		State:     rapid.SampledFrom([]store.State{store.StateFresh, store.StateFailing, store.StateGone}).Draw(t, "state"),
		PollState: m.text(t, "facts"), FeedState: m.text(t, "memo"),
	}
	if rapid.IntRange(0, 4).Draw(t, "asks for a pause") == 0 {
		o.NotBefore = length(t, "not before")
	}
	switch rapid.IntRange(0, 4).Draw(t, "body") {
	case 0, 1, 2:
		o.Body = m.newBody(t, id)
	case 3:
		o.Withdraw = true
	}
	m.drawPauses(t, &o)
	hadVersion := f != nil && f.Version != 0
	err := m.s.Commit(t.Context(), o)
	if f == nil || o.Token == 0 || f.Token != o.Token {
		if !errors.Is(err, store.ErrFenced) {
			t.Fatalf("Commit: error %v, want %v", err, store.ErrFenced)
		}
		return
	}
	if err != nil {
		t.Fatalf("Commit: %v", err)
	}
	f.next, f.State, f.Site = m.now+o.In, o.State, o.Site
	if o.In == store.Ended {
		f.next = store.Ended
	}
	if o.NotBefore > 0 {
		f.earliest = max(f.earliest, m.now+o.NotBefore)
	}
	if o.PollState != nil {
		f.PollState = o.PollState
	}
	if o.FeedState != nil {
		f.FeedState = o.FeedState
	}
	if o.Body != nil {
		f.Version, f.body, f.version = o.Body.Version, o.Body, o.Body.Version
	} else if o.Withdraw {
		f.Version, f.body = 0, nil
	}
	if f.next = max(f.next, f.earliest); f.State == store.StateFailing {
		f.poke = max(f.poke, f.next)
	}
	m.said(t, f, hadVersion, o)
}

// reopen ends a process and starts the next one. A crash of a server is tested elsewhere, as that may lose something.
func (m *model) reopen(t *rapid.T) {
	if m.h.Kill != nil && !m.h.Shared && rapid.Bool().Draw(t, "kill") {
		m.h.Kill(m.s)
	} else if err := m.s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	m.s = m.h.Open()
	m.sameCounters(t)
}

func (m *model) sleep(t *rapid.T) {
	d := steps(t, "sleep")
	m.h.Sleep(d)
	m.now += d
}
