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
			h: begin(t), feeds: make(map[store.ID]*known), hosts: make(map[string]*hostOf), urls: make(map[store.ID]*url),
			pauses: make(map[scope]paused), tokens: make(map[store.Token]bool), counters: make(map[string]string),
		}
		m.s = m.h.Open()
		defer func() { m.s.Close() }()
		rt.Repeat(map[string]func(*rapid.T){
			"claim":    m.claim,
			"claimDue": m.claimDue,
			"hop":      m.hop,
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

func (m *model) claim(t *rapid.T) {
	id, url := m.pick(t)
	c := store.Claim{
		ID: id, URL: url, Hold: length(t, "hold"), Host: m.drawHost(t),
		Configured: rapid.Bool().Draw(t, "configured"),
		Floor:      rapid.SampledFrom([]time.Duration{0, 0, modelFloor, modelFloor + 2*unit}).Draw(t, "floor"),
		Own:        rapid.Bool().Draw(t, "own"),
		By:         rapid.SampledFrom([]store.Owner{0, 0, store.OwnerOf(store.KindToken, "")}).Draw(t, "by"),
	}
	lease, err := m.s.Claim(t.Context(), c)
	if err != nil {
		t.Fatalf("Claim: %v", err)
	}
	f := m.feeds[id]
	if f == nil {
		f = &known{url: m.url(id), asked: never, refused: never}
		f.next = max(m.now, f.earliest, f.polled+max(c.Hold, f.hold))
		f.Record = store.Record{ID: id, URL: url, Hold: c.Hold, State: store.StateCold}
		m.feeds[id] = f
	}
	if c.Configured {
		f.configure(m.now)
	}
	f.Host, f.named, f.own = c.Host, f.named || c.By != 0, f.own || c.Own
	due := f.next
	if c.Floor > 0 {
		due = min(due, max(f.earliest, f.polled+c.Floor))
	}
	want, until := m.deny(c.Host, f.Version != 0)
	if due > m.now {
		want, until = store.DeniedNotDue, max(due, until)
	}
	if lease.Denied != want || want != "" && !nearInAWalk(lease.Wait, m.in(until)) || (lease.Pause.Why != "") != (want == store.DeniedPaused) {
		t.Fatalf("the claim is denied %q for %v because of %+v, want %q for %v", lease.Denied, lease.Wait, lease.Pause, want, m.in(until))
	}
	if want == "" {
		f.Hold = c.Hold
		m.granted(t, f, lease)
	}
	m.same(t, lease.Record, f)
}

func (m *model) claimDue(t *rapid.T) {
	q := store.DueQuery{Limit: rapid.IntRange(1, modelFeeds+1).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "idle") {
		q.Idle = length(t, "idle after")
	}
	if rapid.IntRange(0, 3).Draw(t, "except") == 0 {
		q.Except = []string{"one", "free"}
	}
	var ready []*known // that may be granted, the longest overdue first
	soonest := time.Duration(1 << 60)
	for _, f := range m.feeds {
		if m.expired(f, q.Idle) || f.Host.Site != "" && slices.Contains(q.Except, f.Host.Site) {
			continue
		}
		_, until := m.deny(f.Host, f.Version != 0)
		if at := max(until, f.next); at <= m.now {
			ready = append(ready, f)
		} else if f.sleeps <= m.now {
			soonest = min(soonest, at)
		}
	}
	leases, wait, err := m.s.ClaimDue(t.Context(), q)
	if err != nil {
		t.Fatalf("ClaimDue: %v", err)
	}
	asked := make(map[string]bool)
	before := never
	for _, l := range leases {
		f := m.feeds[l.ID]
		if f == nil || l.Denied != "" || !slices.Contains(ready, f) || f.Host.Site != "" && asked[f.Host.Site] {
			t.Fatalf("granted %+v, of %v", l, ready)
		}
		before = max(before, f.next)
		asked[f.Host.Site] = true
		ready = slices.DeleteFunc(ready, func(g *known) bool { return g == f })
	}
	// Of those that were left, none is longer overdue than its rival that was granted.
	for _, f := range ready {
		if f.sleeps > m.now {
			continue
		}
		since := max(f.next, f.sleeps) // a feed that slept has waited since it was looked at again
		if f.Host.Site != "" && asked[f.Host.Site] {
			soonest = min(soonest, m.now+f.Host.Spacing)
			for _, l := range leases {
				if rival := m.feeds[l.ID]; rival.Host.Site == f.Host.Site && samePlace(rival, f) && since+walkSlack < rival.next {
					t.Fatalf("granted %+v before %+v", rival, f)
				}
			}
		} else if len(leases) < q.Limit || since+walkSlack < before && !m.delayed() {
			t.Fatalf("did not grant %+v", f)
		}
	}
	for _, l := range leases {
		f := m.feeds[l.ID]
		if f.Hold <= 0 {
			t.Fatal("a feed without a hold")
		}
		m.granted(t, f, l)
		soonest = min(soonest, f.next)
		m.same(t, l.Record, f)
	}
	if len(leases) < q.Limit && (wait <= 0 || wait > soonest-m.now+walkSlack) {
		t.Fatalf("to wait %v, but something is due in %v", wait, soonest-m.now)
	}
}

// samePlace reports whether feeds have no other order than by when they are due: both are
// configured, or neither has readers.
func samePlace(a, b *known) bool {
	return a.Configured && b.Configured || !a.Configured && !b.Configured && a.asked == never && b.asked == never && !a.named && !b.named
}

// hop follows a redirect of a feed to a host.
func (m *model) hop(t *rapid.T) {
	id, _ := m.pick(t)
	h := store.Hop{To: id, New: rapid.Bool().Draw(t, "of a new feed"), Host: m.drawHost(t)}
	want, until := m.deny(h.Host, !h.New)
	if u := m.url(id); u.earliest > m.now && h.Host.Site != "" {
		want, until = store.DeniedPaused, max(until, u.earliest)
	}
	wait, err := m.s.Hop(t.Context(), h)
	if err != nil || (wait > 0) != (want != "") || want != "" && !nearInAWalk(wait, m.in(until)) {
		t.Fatalf("Hop = %v, %v, want %q for %v", wait, err, want, m.in(until))
	}
	if want == "" {
		m.start(h.Host)
	}
}

// token draws the right token of a feed, mostly.
func (m *model) token(t *rapid.T, f *known) store.Token {
	if rapid.IntRange(0, 4).Draw(t, "wrong token") == 0 {
		return rapid.SampledFrom(append([]store.Token{0, 1 << 40}, slices.Sorted(maps.Keys(m.tokens))...)).Draw(t, "token")
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
		ID: id, Token: m.token(t, f), Hold: length(t, "hold"), Host: m.drawHost(t),
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
	f.next, f.Hold, f.State, f.Host = m.now+o.In, o.Hold, o.State, o.Host
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
	f.next = max(f.next, f.earliest)
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
