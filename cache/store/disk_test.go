// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// party is a reader or a group of them, with feeds of its own.
type party struct {
	owner store.Owner
	feeds int
	days  int  // between two reads of a feed
	new   bool // other feeds each day
}

// Whatever others do to a full disk for weeks, what the operator, tokens and shields read is served from the store. Of a shield,
// what is read each day is not displaced by what was invented today.
func TestStrangersDisplaceNoOne(t *testing.T) {
	const size = 20_000
	const disk = 60 * 22_000 // of which honest readers need two thirds
	invented := store.OwnerOf(store.KindShield, "blog")
	honest := map[string]party{
		"operator":     {owner: store.Operator, feeds: 5, days: 1},
		"token":        {owner: named(store.KindNamed, 1), feeds: 10, days: 1},
		"weekly token": {owner: named(store.KindNamed, 2), feeds: 4, days: 6},
		"shield":       {owner: invented, feeds: 15, days: 1},
	}
	for name, attack := range map[string]party{
		"60 new feeds of strangers a day":               {owner: store.Any, feeds: 60, new: true},
		"the same 120 feeds of strangers each day":      {owner: store.Any, feeds: 120},
		"30 invented addresses at the shield, each day": {owner: invented, feeds: 30, new: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			random := rand.New(rand.NewPCG(1, 2))
			missed, read := make(map[string]int), make(map[string]int)
			const began = 9
			for day := range 20 {
				type ask struct {
					of, url string
					by      store.Owner
				}
				var asks []ask
				for of, p := range honest {
					for n := range p.feeds {
						if (day+n)%p.days == 0 {
							asks = append(asks, ask{of, fmt.Sprintf("https://%s.test/%d", of, n), p.owner})
						}
					}
				}
				if day >= began {
					for n := range attack.feeds {
						url := fmt.Sprintf("https://attack.test/%d", n)
						if attack.new {
							url += fmt.Sprint("/", day)
						}
						asks = append(asks, ask{"", url, attack.owner})
					}
				}
				random.Shuffle(len(asks), func(i, j int) { asks[i], asks[j] = asks[j], asks[i] })
				for i, a := range asks {
					served := w.read(a.url, a.by, size)
					if a.of != "" && day >= began {
						if read[a.of]++; !served {
							missed[a.of]++
						}
					}
					if i%4 == 0 {
						w.sweep(store.SweepQuery{Disk: disk})
					}
					w.now = w.now.Add(24 * time.Hour / time.Duration(len(asks)))
				}
				w.sweep(store.SweepQuery{Idle: 90 * 24 * time.Hour, Unread: 24 * time.Hour})
				w.sweep(store.SweepQuery{Disk: disk})
			}
			if len(missed) > 0 {
				t.Errorf("not served from the store: %v of %v", missed, read)
			}
		})
	}
}

// The order in which feeds of a full store are forgotten: those of strangers while they use more than an eighth; then the owner
// that uses the most gives way. Of an owner, feeds that were not read for a week go first, the longest ago at the beginning, then
// those that were first asked for most recently. The operator's stay.
func TestWhoGivesWay(t *testing.T) {
	w := newWorld(t)
	a, b := named(store.KindNamed, 1), named(store.KindShield, 2)
	read := func(size int, by store.Owner, urls ...string) {
		for _, url := range urls {
			w.read("https://"+url+".test/", by, size)
			w.now = w.now.Add(time.Minute)
		}
	}
	day := func(n int) { w.now = w.now.Add(time.Duration(n) * 24 * time.Hour) }
	read(20_000, store.Any, "any1", "any2", "any3", "any4")
	read(20_000, a, "a-old", "a-older", "a1", "a2")
	read(20_000, b, "b1", "b2")
	read(200_000, store.Operator, "operator")
	day(1)
	read(20_000, a, "a3", "a-old")
	day(7)
	day(1)
	read(20_000, a, "a1", "a2", "a3")
	read(20_000, b, "b1", "b2")
	read(20_000, store.Any, "any4", "any3", "any2", "any1")
	totals, err := w.s.Totals(t.Context())
	w.must(err)
	var order []string
	for disk := totals.Used - 1; ; disk -= 10_000 {
		gone := w.sweep(store.SweepQuery{Disk: max(1, disk)})
		for _, url := range []string{"any1", "any2", "any3", "any4", "a-old", "a-older", "a1", "a2", "a3", "b1", "b2", "operator"} {
			if slices.Contains(gone, store.IDOf("https://"+url+".test/")) {
				order = append(order, url)
			}
		}
		if disk < 1 {
			break
		}
	}
	if got := strings.Join(order, " "); got != "any4 any3 a-older a-old a3 a2 any2 b2 a1 any1 b1" {
		t.Errorf("they give way in the order %s", got)
	}
}

// The store bounds what it remembers of feeds that gave way: if it takes all that such feeds may take, the store says so until some
// of it has ended.
func TestCrowded(t *testing.T) {
	const disk = 1 << 20
	w := newWorld(t)
	crowded := func() bool {
		w.sweep(store.SweepQuery{Disk: disk})
		totals, err := w.s.Totals(t.Context())
		w.must(err)
		return totals.Crowded
	}
	n := 0
	for ; n < 2000 && !crowded(); n++ {
		l := w.claim(store.Claim{URL: fmt.Sprint("https://invented.test/", n), By: []store.Owner{store.Any}})
		w.must(w.s.Commit(t.Context(), store.Outcome{ID: l.ID, Token: l.Token, In: time.Hour, State: store.StateFresh, FeedState: make([]byte, 3000)}))
		w.now = w.now.Add(time.Second)
	}
	if n == 2000 {
		t.Fatal("never crowded")
	}
	w.now = w.now.Add(25 * time.Hour)
	w.sweep(store.SweepQuery{}) // as there is one each hour
	if crowded() {
		t.Error("crowded a day later")
	}
}

// Of a shield, only so many keys are kept that were not asked for again an hour after they were first asked for. The one that was
// asked for the longest ago goes.
func TestShieldKeys(t *testing.T) {
	w := newWorld(t)
	blog, other := named(store.KindShield, 1), named(store.KindShield, 2)
	key := func(n int) string { return fmt.Sprint("shield blog /", n) }
	for n := range 10 {
		w.read(key(n), blog, 10)
		w.read(fmt.Sprint("shield other /", n%3), other, 10)
		w.now = w.now.Add(time.Minute)
	}
	w.now = w.now.Add(time.Hour)
	w.read(key(0), blog, 10)
	gone := w.sweep(store.SweepQuery{ShieldKeys: 4})
	want := []store.ID{store.IDOf(key(1)), store.IDOf(key(2)), store.IDOf(key(3)), store.IDOf(key(4)), store.IDOf(key(5))}
	if !slices.Equal(gone, want) {
		t.Errorf("%d keys are forgotten, want those from 1 to 5", len(gone))
	}
	w.now = w.now.Add(30 * time.Hour)
	if gone = w.sweep(store.SweepQuery{Shielded: 30 * time.Hour}); len(gone) != 8 {
		t.Errorf("%d keys are forgotten after 30 hours, want 8", len(gone))
	}
}
