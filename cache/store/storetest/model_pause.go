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

// paused is a pause of the model, also one that has ended.
type paused struct {
	until time.Duration
	store.Pause
	token store.Token // of the poll that was refused
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

// said records what hosts said in a poll of a feed.
func (m *model) said(f *known, rank store.Rank, o store.Outcome) {
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
			of := scope("host "+g.Name, r)
			if p := m.pauses[of]; (p.until > m.now || p.Step > 0) && p.token <= o.Token {
				m.pauses[of] = paused{until: min(m.now, p.until)}
			}
		}
	}
	for _, p := range o.Pauses {
		name, own := p.Scope[len("host "):], m.pauses[scope(p.Scope, rank)]
		if p.Why == policy.HintRateLimit {
			limit := m.pauses["ratelimit "+name]
			if limit.until <= m.now {
				limit.Step = int(rank)
			}
			limit.Step, limit.Why = min(limit.Step, int(rank)), p.Why
			limit.until = max(limit.until, m.now+min(p.For, 10*time.Minute))
			m.pauses["ratelimit "+name] = limit
			continue
		}
		switch {
		case own.until > m.now: // they count as one
			own.Step = max(0, own.Step-1)
		case own.until+24*time.Hour <= m.now:
			own.Step = 0
		}
		length := min(time.Hour<<own.Step, 24*time.Hour)
		if p.For > 0 {
			length = min(length, p.For)
		}
		own = paused{max(own.until, m.now+length), store.Pause{Why: p.Why, Step: own.Step + 1, Rank: int(rank)}, max(own.token, o.Token)}
		m.pauses[scope(p.Scope, rank)] = own
		if p.Limited {
			m.limited(name, p.Domain, rank, own)
		}
	}
}

// limited records that a host has answered 429.
func (m *model) limited(name, domain string, rank store.Rank, own paused) {
	if domain == "" {
		return
	}
	last := m.lastLimited[scope(domain, rank)]
	own.until = min(own.until, m.now+time.Hour)
	if last.name != name && last.until > m.now {
		all := own
		all.until, all.Why = max(own.until, last.until), policy.HintDomainCooldown
		m.pauses[scope("domain "+domain, rank)] = all
	}
	if last.name == name || own.until > last.until {
		m.lastLimited[scope(domain, rank)] = limited{name, own.until}
	}
}

// limited is the host of a domain that answered 429 last, and until when that counts.
type limited struct {
	name  string
	until time.Duration
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

func (m *model) samePauses(t *rapid.T) {
	pauses, err := m.s.Pauses(t.Context())
	if err != nil {
		t.Fatalf("Pauses: %v", err)
	}
	want := maps.Clone(m.pauses)
	maps.DeleteFunc(want, func(_ string, p paused) bool { return p.until <= m.now })
	for _, p := range pauses {
		w, ok := want[p.Scope]
		if !ok || !m.near(p.For, w.until-m.now) || p.Why != w.Why || p.Step != w.Step {
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
