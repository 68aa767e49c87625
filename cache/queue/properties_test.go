// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// put is a feed in the queue, as the model knows it.
type put struct {
	Feed
	pausing bool
}

// model knows which feeds are in the queue, and checks what comes out of it.
type model struct {
	q       *Queue
	now     time.Duration
	due     []put
	waiting map[ID]put
	marked  map[ID]bool
	taken   []Feed
	busy    map[string]bool
	free    map[string]time.Duration
	held    map[string]time.Duration
	heldNew map[string]time.Duration
	by      map[string]Owner
	hops    map[string]int
}

func newModel() *model {
	return &model{
		q: New(operator), waiting: make(map[ID]put), marked: make(map[ID]bool), busy: make(map[string]bool),
		free: make(map[string]time.Duration), held: make(map[string]time.Duration), heldNew: make(map[string]time.Duration),
		by: make(map[string]Owner), hops: make(map[string]int),
	}
}

var (
	drawSite  = rapid.SampledFrom([]string{"a", "b", "c"})
	drawOwner = rapid.SampledFrom([]Owner{operator, alice, bob, carol})
	drawTime  = rapid.Map(rapid.IntRange(0, 20), func(n int) time.Duration { return time.Duration(n) * time.Second / 2 })
	drawID    = rapid.Map(rapid.IntRange(1, 20), numbered)
	drawFeed  = rapid.Custom(func(t *rapid.T) Feed {
		return Feed{
			ID: drawID.Draw(t, "id"), Site: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "site"),
			Owner: drawOwner.Draw(t, "owner"), New: rapid.Bool().Draw(t, "new"), Due: drawTime.Draw(t, "due"),
		}
	})
)

func (m *model) put(f Feed) put { return put{f, m.marked[f.ID] && f.Site != ""} }

func (m *model) wait(t *rapid.T) {
	f := drawFeed.Draw(t, "feed")
	m.q.Wait(f)
	m.waiting[f.ID] = m.put(f)
}

func (m *model) leave(t *rapid.T) {
	id := drawID.Draw(t, "id")
	m.q.Leave(id)
	delete(m.waiting, id)
}

func (m *model) putDue(t *rapid.T) {
	feeds := rapid.SliceOfN(drawFeed, 1, 5).Draw(t, "feeds")
	m.q.Due(feeds...)
	for _, f := range feeds {
		m.due = append(m.due, m.put(f))
	}
}

func (m *model) dropDue(*rapid.T) {
	m.q.DropDue()
	m.due = nil
}

func (m *model) mark(t *rapid.T) {
	id := drawID.Draw(t, "id")
	if m.marked[id] = rapid.Bool().Draw(t, "paused"); m.marked[id] {
		m.q.Paused(id)
	} else {
		m.q.Answered(id)
	}
}

func (m *model) hold(t *rapid.T) {
	site, fresh, by, until := drawSite.Draw(t, "site"), rapid.Bool().Draw(t, "new"), drawOwner.Draw(t, "by"), m.now+drawTime.Draw(t, "for")
	m.q.Hold(site, fresh, until, by)
	if fresh {
		m.heldNew[site], m.by[site] = until, by
	} else {
		m.held[site] = until
	}
}

func (m *model) hop(t *rapid.T) {
	site := drawSite.Draw(t, "site")
	switch n := rapid.IntRange(0, 2).Draw(t, "what"); {
	case n == 0:
		m.q.HopWaits(site, 1, m.now)
		m.hops[site]++
	case m.hops[site] == 0:
	case n == 1:
		m.q.HopWaits(site, -1, m.now)
		m.hops[site]--
	default:
		if m.q.TakeHop(site, spacing, m.now) > 0 {
			return
		}
		if m.busy[site] || m.now < max(m.free[site], m.held[site]) {
			t.Errorf("a redirect has a slot of %s, which is not free", site)
		}
		if rapid.Bool().Draw(t, "give") {
			m.q.GiveHop(site)
			m.free[site] = 0
		} else {
			m.free[site] = m.now + spacing
		}
	}
}

func (m *model) pass(t *rapid.T) { m.now += drawTime.Draw(t, "time") }

func (m *model) next(t *rapid.T) {
	when := m.q.When(m.now)
	if when < m.now {
		t.Errorf("looked at in the past, at %v", when)
	}
	feeds := m.q.Next(m.now, rapid.IntRange(1, 10).Draw(t, "n"))
	if len(feeds) > 0 && when > m.now {
		t.Errorf("%v before %v", feeds, when)
	}
	for _, f := range feeds {
		m.take(t, f)
	}
}

// take checks that a feed may be taken and that it is the first of its owner, and takes it out of the model.
func (m *model) take(t *rapid.T, f Feed) {
	var p put
	if f.Waiting {
		p = m.waiting[f.ID]
		delete(m.waiting, f.ID)
	} else if i := slices.IndexFunc(m.due, func(p put) bool { return same(p.Feed, f) }); i >= 0 {
		p = m.due[i]
		m.due = slices.Delete(m.due, i, i+1)
	}
	if !same(p.Feed, f) {
		t.Fatalf("%+v is not in the queue", f)
	}
	m.taken = append(m.taken, f)
	if f.Site == "" {
		return
	}
	if m.busy[f.Site] || m.now < max(m.free[f.Site], m.held[f.Site]) || f.New && m.now < m.heldNew[f.Site] {
		t.Errorf("%+v at %v, but its site is not free", f, m.now)
	}
	m.busy[f.Site] = true
	before := func(other put, waits bool) bool {
		switch {
		case other.Site != f.Site || other.New && (m.now < m.heldNew[f.Site] || other.Owner == m.by[f.Site]):
			return false
		case other.pausing != p.pausing:
			return p.pausing
		case other.Owner != f.Owner || !waits && f.Waiting:
			return false
		}
		return waits && !f.Waiting || !waits && other.Due < f.Due
	}
	for _, other := range m.due {
		if before(other, false) {
			t.Errorf("%+v before %+v, which is due", f, other)
		}
	}
	for _, other := range m.waiting {
		if before(other, true) {
			t.Errorf("%+v before %+v, for which a reader waits", f, other)
		}
	}
}

func same(a, b Feed) bool {
	return a.ID == b.ID && a.Site == b.Site && a.Owner == b.Owner && a.New == b.New && a.Due == b.Due
}

// answer ends the claim of a feed that was taken.
func (m *model) answer(t *rapid.T) {
	if len(m.taken) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.taken)-1).Draw(t, "taken")
	f := m.taken[i]
	m.taken = slices.Delete(m.taken, i, i+1)
	m.busy[f.Site] = false
	switch rapid.IntRange(0, 2).Draw(t, "how") {
	case 0:
		m.q.Free(f.Site)
	case 1:
		m.q.Asked(f.Site, f.Owner, m.now, m.now+spacing)
		m.free[f.Site] = m.now + spacing
	default:
		at := m.now + drawTime.Draw(t, "back")
		m.q.Back(f, at)
		m.free[f.Site] = max(m.free[f.Site], at)
		if f.Waiting {
			m.waiting[f.ID] = m.put(f)
		} else {
			m.due = append(m.due, m.put(f))
		}
	}
}

func (m *model) check(t *rapid.T) {
	if m.q.DueLen() != len(m.due) {
		t.Fatalf("%d are due, want %d", m.q.DueLen(), len(m.due))
	}
	for i := range 20 {
		if _, waits := m.waiting[numbered(i)]; waits != m.q.Waits(numbered(i)) {
			t.Fatalf("%d waits: %v, want %v", i, !waits, waits)
		}
	}
}

// end takes all that is left: each feed has its turn within the time that those before it take.
func (m *model) end(t *rapid.T) {
	for _, f := range m.taken {
		m.q.Free(f.Site)
	}
	clear(m.busy)
	for site, n := range m.hops {
		m.q.HopWaits(site, -n, m.now)
	}
	most := m.now + time.Minute + time.Duration(len(m.due)+len(m.waiting))*spacing
	for m.now = m.q.When(m.now); m.now < math.MaxInt64; m.now = m.q.When(m.now) {
		if m.now > most {
			t.Fatalf("not taken by %v: %v, %v", m.now, m.due, slices.Collect(maps.Keys(m.waiting)))
		}
		for _, f := range m.q.Next(m.now, 5) {
			m.take(t, f)
			m.busy[f.Site], m.free[f.Site] = false, m.now+spacing
			m.q.Asked(f.Site, f.Owner, m.now, m.now+spacing)
		}
	}
	if len(m.due) > 0 || len(m.waiting) > 0 {
		t.Fatalf("lost: %v, %v", m.due, m.waiting)
	}
	m.q.Next(1000*time.Hour, 1)
	if n := len(m.q.sites) + len(m.q.owners) + len(m.q.active) + len(m.q.idle); n > 0 {
		t.Fatalf("%d things are remembered: %+v", n, m.q)
	}
}

// No feed is lost, and none comes twice that was not put twice. One of a site comes at a time, in the order of its owner,
// and only while the site is free.
func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		t.Repeat(map[string]func(*rapid.T){
			"":     m.check,
			"Wait": m.wait, "Leave": m.leave, "Due": m.putDue, "DropDue": m.dropDue, "Paused": m.mark,
			"Hold": m.hold, "Hop": m.hop, "Next": m.next, "Answer": m.answer, "Pass": m.pass,
		})
		m.end(t)
	})
}

// At a site the operator has its nth poll by slot 2n, and each of m other owners by slot 2mn.
func TestNoOwnerStarves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(operator)
		feeds := rapid.SliceOfN(drawFeed, 1, 60).Draw(t, "feeds")
		others := make(map[Owner]bool)
		for i, f := range feeds {
			f.ID, f.Site = numbered(i), "s"
			if f.Owner != operator {
				others[f.Owner] = true
			}
			if rapid.Bool().Draw(t, "waits") {
				q.Wait(f)
			} else {
				q.Due(f)
			}
		}
		for owner, had := range slots(q, 5) {
			for i, slot := range had {
				if most := 2 * (i + 1); owner == operator && slot > most || slot > most*max(len(others), 1) {
					t.Errorf("owner %d has poll %d at slot %d", owner, i+1, slot)
				}
			}
		}
	})
}

// Of many feeds of a site those are left, in their order, that were not taken out of the queue.
func TestLeaveAndDrop(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := New(operator)
		n, fresh := rapid.IntRange(1, 50).Draw(t, "feeds"), rapid.Bool().Draw(t, "new")
		var want []ID
		for _, i := range rapid.Permutation(numbers(2*n)).Draw(t, "order") {
			f := Feed{ID: numbered(i / 2), Site: "s", New: fresh, Due: time.Duration(-i)}
			if i%2 == 0 {
				q.Due(f)
			} else {
				q.Wait(f)
				want = append(want, f.ID)
			}
		}
		for _, i := range rapid.SliceOf(rapid.IntRange(0, n-1)).Draw(t, "leave") {
			q.Leave(numbered(i))
			want = slices.DeleteFunc(want, func(id ID) bool { return id == numbered(i) })
		}
		if q.DropDue(); fresh {
			slices.Reverse(want)
		}
		var got []ID
		for now := q.When(0); now < math.MaxInt64; now = q.When(now) {
			for _, f := range q.Next(now, 1) {
				got = append(got, f.ID)
				q.Asked(f.Site, f.Owner, now, now)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func numbers(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}
