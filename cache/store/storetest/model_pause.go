// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
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

// scope is what a pause holds for: a site, or its feeds without a version.
type scope struct {
	site  string
	isNew bool
}

func scopeOf(p store.Pause) scope { return scope{p.Site, p.New} }

// siteOf is what the model knows of a site.
type siteOf struct {
	started time.Duration // its last request
	good    time.Duration // its last good answer
}

func (m *model) site(name string) *siteOf {
	if m.sites[name] == nil {
		m.sites[name] = &siteOf{started: never, good: never}
	}
	return m.sites[name]
}

// deny is the rule of sites for feeds with or without a version.
func (m *model) deny(of store.Host, hasVersion bool) (denied store.Refusal, until time.Duration) {
	until = m.now
	if free := m.site(of.Site).started + of.Spacing; of.Site != "" && free > m.now {
		denied, until = store.DeniedBusy, free
	}
	for _, isNew := range []bool{false, true} {
		if p := m.pauses[scope{of.Site, isNew}]; p.until > m.now && !(isNew && hasVersion) {
			denied, until = store.DeniedPaused, max(until, p.until)
		}
	}
	return denied, until
}

// drawPauses draws what sites say in a poll.
func (m *model) drawPauses(t *rapid.T, o *store.Outcome) {
	for range rapid.IntRange(0, 2).Draw(t, "answers") {
		site := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "of site")
		p := store.Pause{Site: site, For: steps(t, "asked") + unit/3, Why: policy.HintHostCooldown}
		switch rapid.IntRange(0, 4).Draw(t, "answer") {
		case 0:
			o.Good = append(o.Good, site)
			continue
		case 1:
			p.Why = policy.HintRateLimit
			o.Good = append(o.Good, site)
		case 2:
			p.For = 0
		}
		o.Pauses = append(o.Pauses, p)
	}
}

// said records what sites said in a poll. How long a pause is, is what the store says then: tests of its own
// hold it to that. Here it is bounded, and concerns no other site and no other feeds.
func (m *model) said(t *rapid.T, f *modelFeed, hadVersion bool, o store.Outcome) {
	for _, site := range o.Good {
		m.site(site).good = m.now
		for _, isNew := range []bool{false, true} {
			if p, ok := m.pauses[scope{site, isNew}]; ok {
				p.Step = 0
				m.pauses[scope{site, isNew}] = p
			}
		}
	}
	longest, least := make(map[scope]time.Duration), make(map[scope]time.Duration) // of pauses that may have changed
	for _, p := range o.Pauses {
		of := scope{p.Site, !hadVersion}
		if p.Why == policy.HintRateLimit {
			longest[of] = max(longest[of], 10*time.Minute)
			continue
		}
		longest[of] = 24 * time.Hour
		alone := f.refused != never && m.site(p.Site).good >= f.refused || !f.own && !m.configured(f)
		if f.refused = m.now; !alone && hadVersion {
			least[of] = max(least[of], time.Hour-walkSlack)
			if p.For > 0 {
				least[of] = min(least[of], p.For-walkSlack)
			}
		}
	}
	for _, p := range m.readPauses(t) {
		of := scopeOf(p)
		if most, ok := longest[of]; ok {
			if p.For > max(most, m.pauses[of].until-m.now)+walkSlack {
				t.Fatalf("%+v, want %v at most", p, most)
			}
			if p.For < least[of] {
				t.Fatalf("%+v, want %v at least", p, least[of])
			}
			m.pauses[of] = paused{m.now + p.For, p}
			delete(longest, of)
			delete(least, of)
		}
	}
	for of := range longest {
		delete(m.pauses, of)
		if least[of] > 0 {
			t.Fatalf("refused, and %+v is not paused", of)
		}
	}
}

// restorePause restores a pause of an export.
func (m *model) restorePause(t *rapid.T) {
	p := rapid.SampledFrom([]store.Pause{{Site: "one"}, {Site: "two", New: true}, {Site: "three"}}).Draw(t, "scope")
	p.For, p.Why, p.Step = length(t, "pause"), policy.HintHostCooldown, rapid.IntRange(0, 3).Draw(t, "step")
	if err := m.s.Restore(t.Context(), []store.Saved{{Pause: &p}}); err != nil {
		t.Fatalf("Restore: %v", err)
	}
	if until := m.now + min(p.For, 24*time.Hour); until >= m.pauses[scopeOf(p)].until {
		m.pauses[scopeOf(p)] = paused{until: until, Pause: p}
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
	maps.DeleteFunc(want, func(_ scope, p paused) bool { return p.until <= m.now })
	for _, p := range pauses {
		w, ok := want[scopeOf(p)]
		if !ok || !nearInAWalk(p.For, w.until-m.now) || p.Why != w.Why || p.Step != w.Step || p.URL != w.URL {
			t.Fatalf("Pauses has %+v, want %+v", p, w)
		}
		delete(want, scopeOf(p))
	}
	if len(want) != 0 {
		t.Fatalf("Pauses lacks %+v, has %+v", slices.Collect(maps.Keys(want)), pauses)
	}
}

// owner returns the owner of a feed, as the store has it.
func (m *model) owner(t *rapid.T, id store.ID) store.Owner {
	records, err := m.s.Lookup(t.Context(), []store.ID{id})
	if err != nil {
		t.Fatalf("Lookup: %v", err)
	}
	if len(records) == 0 {
		return 0
	}
	return records[0].Owner
}
