// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// paused is a pause, also one that has ended.
type paused struct {
	until time.Duration
	store.Pause
}

// hostOf is what the model knows of a host.
type hostOf struct {
	started time.Duration // its last request
	good    time.Duration // it last answered well
	plain   [6]bool       // by rank: that answer said nothing of a rate limit
}

func (m *model) host(name string) *hostOf {
	if m.hosts[name] == nil {
		m.hosts[name] = &hostOf{started: never, good: never}
	}
	return m.hosts[name]
}

// deny is the rule of hosts for feeds of a rank.
func (m *model) deny(of store.Host, rank store.Rank, byHand bool) (denied store.Refusal, until time.Duration) {
	until = m.now
	h := m.host(of.Name)
	if of.Name != "" && h.started+of.Spacing > m.now {
		denied, until = store.DeniedBusy, h.started+of.Spacing
	}
	if byHand && rank == store.RankOperator {
		return denied, until
	}
	wait := func(p paused) {
		if p.until > m.now {
			denied, until = store.DeniedPaused, max(until, p.until)
		}
	}
	for r := range rank + 1 {
		wait(m.pauses[scope("host "+of.Name, r)])
		if h.good+48*time.Hour <= m.now {
			wait(m.pauses[scope("domain "+of.Domain, r)])
		}
	}
	if p := m.pauses["ratelimit "+of.Name]; int(rank) >= p.Step || !h.plain[rank] {
		wait(p)
	}
	return denied, until
}

// scope is that of a pause for a rank; 0: for all.
func scope(of string, rank store.Rank) string {
	if rank == 0 {
		return of
	}
	return fmt.Sprint(of, " ", int(rank))
}

// drawPauses draws what hosts say in a poll.
func (m *model) drawPauses(t *rapid.T, o *store.Outcome) {
	for range rapid.IntRange(0, 2).Draw(t, "answers") {
		h := rapid.SampledFrom([]store.Host{{Name: "a.one", Domain: "one"}, {Name: "b.one", Domain: "one"}, {Name: "two"}}).Draw(t, "of host")
		p := store.Pause{Scope: "host " + h.Name, Domain: h.Domain, For: steps(t, "asked") + unit/3, Why: policy.HintHostCooldown}
		switch rapid.IntRange(0, 4).Draw(t, "answer") {
		case 0:
			o.Good = append(o.Good, policy.Good{Host: h})
		case 1:
			p.Why = policy.HintRateLimit
			o.Good = append(o.Good, policy.Good{Host: h, RateLimit: true})
			o.Pauses = append(o.Pauses, p)
		case 2:
			p.Limited, p.For = true, 0
			o.Pauses = append(o.Pauses, p)
		default:
			p.Limited = rapid.Bool().Draw(t, "429")
			o.Pauses = append(o.Pauses, p)
		}
	}
}

// said records what hosts said in a poll. How long a pause is, and which ones end, is what the store says then: tests of its own
// hold it to that. Here it is bounded, and concerns no other host and no better rank.
func (m *model) said(t *rapid.T, rank store.Rank, o store.Outcome) {
	longest := make(map[string]time.Duration) // of pauses that may have changed
	for _, g := range o.Good {
		h := m.host(g.Name)
		if h.good+48*time.Hour <= m.now {
			h.plain = [6]bool{}
		}
		if h.good+time.Hour <= m.now || h.plain[rank] == g.RateLimit { // it is not written each time
			h.good = m.now
		}
		h.plain[rank] = !g.RateLimit
		for r := rank; r <= store.RankPublicNew; r++ {
			longest[scope("host "+g.Name, r)] = 24 * time.Hour
		}
	}
	for _, p := range o.Pauses {
		if p.Why == policy.HintRateLimit {
			longest["ratelimit "+p.Scope[len("host "):]] = 10 * time.Minute
			continue
		}
		longest[scope(p.Scope, rank)], longest[scope("domain "+p.Domain, rank)] = 24*time.Hour, time.Hour
	}
	for _, p := range m.readPauses(t) {
		if most, ok := longest[p.Scope]; ok {
			if p.For > max(most, m.pauses[p.Scope].until-m.now) {
				t.Fatalf("%+v, want %v at most", p, most)
			}
			m.pauses[p.Scope] = paused{m.now + p.For, p}
			delete(longest, p.Scope)
		}
	}
	for of := range longest {
		delete(m.pauses, of)
	}
	for _, p := range o.Pauses {
		least := time.Hour - walkSlack
		if p.For > 0 {
			least = min(least, p.For-walkSlack)
		}
		if got := m.pauses[scope(p.Scope, rank)]; p.Why != policy.HintRateLimit && got.For < least {
			t.Fatalf("refused for %v, and paused for %v", p.For, got.For)
		}
	}
}

// restorePause restores a pause of an export.
func (m *model) restorePause(t *rapid.T) {
	p := store.Pause{
		Scope: rapid.SampledFrom([]string{"host a.one", "host two 3", "domain one 1", "domain one"}).Draw(t, "scope"),
		For:   length(t, "pause"), Why: policy.HintHostCooldown, Step: rapid.IntRange(0, 3).Draw(t, "step"),
	}
	if err := m.s.Restore(t.Context(), []store.Saved{{Pause: &p}}); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	if until := m.now + min(p.For, 24*time.Hour); until >= m.pauses[p.Scope].until {
		m.pauses[p.Scope] = paused{until: until, Pause: p}
	}
}

func (m *model) readPauses(t *rapid.T) []store.Pause {
	pauses, err := m.s.Pauses(t.Context())
	if err != nil {
		t.Fatalf("Pauses: %v", err)
	}
	return pauses
}

func (m *model) samePauses(t *rapid.T) {
	pauses := m.readPauses(t)
	want := maps.Clone(m.pauses)
	maps.DeleteFunc(want, func(_ string, p paused) bool { return p.until <= m.now })
	for _, p := range pauses {
		w, ok := want[p.Scope]
		if !ok || !nearInAWalk(p.For, w.until-m.now) || p.Why != w.Why || p.Step != w.Step || p.URL != w.URL {
			t.Fatalf("Pauses has %+v, want %+v", p, w)
		}
		delete(want, p.Scope)
	}
	if len(want) != 0 {
		t.Fatalf("Pauses lacks %+v, has %+v", slices.Collect(maps.Keys(want)), pauses)
	}
}

// rank returns the rank of a feed, as the store has it.
func (m *model) rank(t *rapid.T, id store.ID) store.Rank {
	records, err := m.s.Lookup(t.Context(), []store.ID{id})
	if err != nil {
		t.Fatalf("Lookup: %v", err)
	}
	if len(records) == 0 {
		return store.RankPublicNew
	}
	r := records[0].Rank
	if r < store.RankOperator || r > store.RankPublicNew || records[0].Configured != (r == store.RankOperator) {
		t.Fatalf("rank %d of %+v", r, records[0])
	}
	return r
}
