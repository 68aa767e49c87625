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
			h: begin(t), feeds: make(map[store.ID]*known), started: make(map[string]time.Duration),
			pauses: make(map[string]paused), hops: make(map[store.ID]time.Duration),
			last:   make(map[store.ID]lastPoll),
			tokens: make(map[store.Token]bool), versions: make(map[store.ID]uint64),
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
			"trim":     m.trim,
			"restore":  m.restore,
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
	return feed(rapid.IntRange(0, modelFeeds-1).Draw(t, "feed"))
}

// host draws a host. Each has its spacing.
func (m *model) host(t *rapid.T) store.Host {
	return rapid.SampledFrom([]store.Host{
		{},
		{Name: "a.one", Domain: "one", Spacing: unit/3 + unit},
		{Name: "b.one", Domain: "one", Spacing: unit / 3},
		{Name: "two", Spacing: unit/3 + 3*unit},
		{Name: "free"},
	}).Draw(t, "host")
}

func (m *model) text(t *rapid.T, name string) []byte {
	return rapid.SampledFrom([][]byte{nil, {}, []byte("a"), []byte("more")}).Draw(t, name)
}

func (m *model) claim(t *rapid.T) {
	claims := make([]store.Claim, rapid.IntRange(1, 3).Draw(t, "claims"))
	for i := range claims {
		id, url := m.pick(t)
		claims[i] = store.Claim{
			ID: id, URL: url, Hold: length(t, "hold"), Host: m.host(t),
			Configured: rapid.Bool().Draw(t, "configured"),
			Floor:      rapid.SampledFrom([]time.Duration{0, 0, hopFloor, hopFloor + 2*unit}).Draw(t, "floor"),
		}
	}
	leases, err := m.s.Claim(t.Context(), claims)
	if err != nil || len(leases) != len(claims) {
		t.Fatalf("Claim = %d leases, %v", len(leases), err)
	}
	for i, c := range claims {
		f := m.feeds[c.ID]
		if f == nil {
			f = &known{next: m.now, polled: never, asked: never}
			if last, was := m.last[c.ID]; was && last.polled != never {
				f.polled, f.next = last.polled, max(m.now, last.polled+c.Hold)
			}
			f.Record = store.Record{ID: c.ID, URL: c.URL, Hold: c.Hold, State: store.StateCold}
			m.feeds[c.ID] = f
		}
		f.Configured, f.Host = c.Configured, c.Host
		due := f.next
		if c.Floor > 0 {
			due = min(due, m.lastAsked(c.ID)+c.Floor)
		}
		want, until := m.deny(c.Host)
		if due > m.now {
			want, until = store.DeniedNotDue, max(due, until)
		}
		if leases[i].Denied != want || want != "" && !m.near(leases[i].Wait, m.in(until)) {
			t.Fatalf("claim %d is denied %q for %v, want %q for %v", i, leases[i].Denied, leases[i].Wait, want, m.in(until))
		}
		if (leases[i].Why != "") != (want == store.DeniedPaused) {
			t.Fatalf("claim %d is denied %q because of %q", i, want, leases[i].Why)
		}
		if want == "" {
			f.Hold = c.Hold
			m.granted(t, f, leases[i])
		}
		m.same(t, leases[i].Record, f)
	}
}

func (m *model) claimDue(t *rapid.T) {
	q := store.DueQuery{Limit: rapid.IntRange(1, modelFeeds+1).Draw(t, "limit")}
	if rapid.Bool().Draw(t, "idle") {
		q.Idle = length(t, "idle after")
	}
	if rapid.IntRange(0, 3).Draw(t, "except") == 0 {
		q.Except = []string{"a.one", "free"}
	}
	var ready []*known // that may be granted, the longest overdue first
	soonest := time.Duration(1 << 60)
	for _, f := range m.feeds {
		if m.unwanted(f, q.Idle) || f.Host.Name != "" && slices.Contains(q.Except, f.Host.Name) {
			continue
		}
		_, until := m.deny(f.Host)
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
		if f == nil || l.Denied != "" || !slices.Contains(ready, f) || f.Host.Name != "" && asked[f.Host.Name] {
			t.Fatalf("granted %+v, of %v", l, ready)
		}
		before = max(before, f.next)
		asked[f.Host.Name] = true
		ready = slices.DeleteFunc(ready, func(g *known) bool { return g == f })
	}
	// Of those that were left, none is longer overdue than its rival that was granted.
	for _, f := range ready {
		if f.sleeps > m.now {
			continue
		}
		if f.Host.Name != "" && asked[f.Host.Name] {
			soonest = min(soonest, m.now+f.Host.Spacing)
			for _, l := range leases {
				if rival := m.feeds[l.ID]; rival.Host.Name == f.Host.Name && samePlace(rival, f) && f.next+walkSlack < rival.next {
					t.Fatalf("granted %+v before %+v", rival, f)
				}
			}
		} else if len(leases) < q.Limit || f.next+walkSlack < before && !m.delayed() {
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
	return a.Configured && b.Configured || !a.Configured && !b.Configured && a.asked == never && b.asked == never
}

func (m *model) hop(t *rapid.T) {
	id, _ := m.pick(t)
	h := store.Hop{ID: id, Floor: hopFloor, Yield: rapid.Bool().Draw(t, "yield"), Host: m.host(t)}
	f := m.feeds[id]
	want, until := m.deny(h.Host)
	if free := m.lastAsked(id) + h.Floor; free > m.now {
		want, until = store.DeniedNotDue, max(free, until)
	}
	taken := h.Yield && f != nil && f.next != store.Ended
	if taken {
		want = store.DeniedTaken
	}
	got, err := m.s.Hop(t.Context(), h)
	if err != nil || got.Denied != want || want != "" && !taken && !m.near(got.Wait, until-m.now) {
		t.Fatalf("Hop = %+v, %v, want %q for %v", got, err, want, until-m.now)
	}
	if want != "" {
		return
	}
	m.hops[id] = m.now
	if l, was := m.last[id]; was && f == nil {
		m.last[id] = lastPoll{l.polled, max(l.until, m.now+h.Floor)}
	}
	m.start(h.Host)
	if f != nil {
		f.next = max(f.next, m.now+h.Floor)
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
		Version: m.versions[id] + rapid.Uint64Range(1, 3).Draw(t, "version"),
		Coding:  rapid.SampledFrom([]string{"gzip", "identity"}).Draw(t, "coding"),
		Data:    rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "data"),
	}
}

func (m *model) commit(t *rapid.T) {
	id, _ := m.pick(t)
	f := m.feeds[id]
	o := store.Outcome{
		ID: id, Token: m.token(t, f), Hold: length(t, "hold"), Host: m.host(t),
		In:    rapid.SampledFrom([]time.Duration{store.Ended, 0, length(t, "in"), length(t, "in")}).Draw(t, "next"),
		State: rapid.SampledFrom([]store.State{store.StateFresh, store.StateFailing, store.StateGone}).Draw(t, "state"),
		Facts: m.text(t, "facts"), Memo: m.text(t, "memo"),
	}
	switch rapid.IntRange(0, 4).Draw(t, "body") {
	case 0, 1, 2:
		o.Body = m.newBody(t, id)
	case 3:
		o.Withdraw = true
	}
	for range rapid.IntRange(0, 2).Draw(t, "pauses") {
		o.Pauses = append(o.Pauses, store.Pause{
			Scope: rapid.SampledFrom([]string{"host a.one", "host two", "domain one"}).Draw(t, "scope"),
			For:   length(t, "pause"),
			Why:   rapid.SampledFrom([]string{"host-cooldown", "other"}).Draw(t, "why"),
			Step:  rapid.IntRange(0, 3).Draw(t, "step"),
		})
	}
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
	if o.Facts != nil {
		f.Facts = o.Facts
	}
	if o.Memo != nil {
		f.Memo = o.Memo
	}
	if o.Body != nil {
		f.Version, f.body, m.versions[id] = o.Body.Version, o.Body, o.Body.Version
	} else if o.Withdraw {
		f.Version, f.body = 0, nil
	}
	for _, p := range o.Pauses {
		if until := m.now + p.For; until >= m.pauses[p.Scope].until {
			m.pauses[p.Scope] = paused{until, p}
		}
	}
}

func (m *model) touch(t *rapid.T) {
	asked := make(map[store.ID]store.Asked)
	for range rapid.IntRange(0, 3).Draw(t, "feeds") {
		id, _ := m.pick(t)
		asked[id] = store.Asked{Ago: steps(t, "ago")}
	}
	if err := m.s.Touch(t.Context(), asked); err != nil {
		t.Fatalf("Touch: %v", err)
	}
	for id, a := range asked {
		if f := m.feeds[id]; f != nil {
			f.asked, f.sleeps = max(f.asked, m.now-a.Ago), 0
			f.touches++
		}
	}
}

func (m *model) forget(t *rapid.T) {
	id, _ := m.pick(t)
	want := error(nil)
	if m.feeds[id] == nil {
		want = store.ErrNoRecord
	}
	if err := m.s.Forget(t.Context(), id); !errors.Is(err, want) {
		t.Fatalf("Forget: error %v, want %v", err, want)
	}
	if m.feeds[id] != nil {
		m.forgotten(id)
	}
}

// forgotten removes a feed, of which its last poll is remembered.
func (m *model) forgotten(id store.ID) {
	f := m.feeds[id]
	delete(m.feeds, id)
	until := m.now
	if f.polled != never {
		until = f.polled + f.Hold
	}
	if f.Version == 0 && !f.Configured && f.touches < 3 {
		until = min(until, m.now+24*time.Hour-time.Minute)
	}
	m.last[id] = lastPoll{f.polled, max(until, m.now+15*time.Minute)}
}

func (m *model) sweep(t *rapid.T) {
	q := store.SweepQuery{Idle: length(t, "idle"), Unread: length(t, "unread")}
	kept := store.ID{}
	if rapid.Bool().Draw(t, "keep one") {
		kept, _ = m.pick(t)
		q.Keep = func(id store.ID) bool { return id == kept }
	}
	want := make(map[store.ID]bool)
	may := make(map[store.ID]bool)
	for id, f := range m.feeds {
		quiet := m.now - wanted(f)
		unread := f.Version == 0 && !f.Configured && f.next <= m.now
		if id == kept {
			continue
		}
		if !unread && quiet >= q.Idle || unread && quiet >= q.Unread {
			want[id] = true
		}
		if f.touches >= 3 { // it may be established: that depends on when its days begin
			may[id] = want[id] || quiet >= q.Idle
			delete(want, id)
		}
	}
	for id, l := range m.last { // rows go before feeds do
		if l.until < m.now {
			delete(m.last, id)
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
		m.forgotten(id)
	}
	if len(want) > 0 {
		t.Fatalf("swept %x, but not %x", got, slices.Collect(maps.Keys(want)))
	}
}

// trim leaves all bodies, or none but those of configured feeds.
func (m *model) trim(t *rapid.T) {
	budget := rapid.SampledFrom([]int64{1 << 40, 0}).Draw(t, "budget")
	trimmed, err := m.s.Trim(t.Context(), budget)
	if err != nil {
		t.Fatalf("Trim: %v", err)
	}
	for _, id := range trimmed {
		f := m.feeds[id]
		if f == nil || f.body == nil || budget > 0 || f.Configured {
			t.Fatalf("trimmed %x for %d", trimmed, budget)
		}
		f.Version, f.body = 0, nil
	}
	for id, f := range m.feeds {
		if f.body != nil && budget == 0 && !f.Configured {
			t.Fatalf("trimmed %x, but not %x", trimmed, id)
		}
	}
}

func (m *model) restore(t *rapid.T) {
	id, url := m.pick(t)
	f := &known{}
	f.Record = store.Record{
		ID: id, URL: url, Hold: length(t, "hold"), State: store.StateFresh, Host: m.host(t),
		In: length(t, "in"), Polled: 10*unit + steps(t, "polled"), Asked: steps(t, "asked"),
		Facts: m.text(t, "facts"), Memo: m.text(t, "memo"), Configured: rapid.Bool().Draw(t, "configured"),
	}
	if rapid.IntRange(0, 3).Draw(t, "ended") == 0 {
		f.In = store.Ended
	}
	f.next, f.polled, f.asked = m.now+f.In, m.now-f.Polled, m.now-f.Asked
	if f.In == store.Ended {
		f.next = store.Ended
	}
	if rapid.Bool().Draw(t, "with body") {
		f.body = m.newBody(t, id)
		f.Version, m.versions[id] = f.body.Version, f.body.Version
	}
	if err := m.s.Restore(t.Context(), []store.Saved{{Record: f.Record, Body: f.body}}); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	if old := m.feeds[id]; old != nil {
		f.next, f.polled = max(f.next, old.next), max(f.polled, old.polled)
	} else if last, was := m.last[id]; was && last.polled != never {
		f.next, f.polled = max(f.next, last.polled+f.Hold), max(f.polled, last.polled)
	}
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

func (m *model) reopen(t *rapid.T) {
	if err := m.s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
	m.s = m.h.Open()
}

func (m *model) sleep(t *rapid.T) {
	d := steps(t, "sleep")
	m.h.Sleep(d)
	m.now += d
}
