// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
)

// world is a store, its clock, and what reads and polls its feeds.
type world struct {
	t   testing.TB
	s   *sqlite.Store
	now time.Time
}

func newWorld(t testing.TB) *world {
	w := &world{t: t, now: time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)}
	w.s = sqlite.NewMemory(func() time.Time { return w.now })
	t.Cleanup(func() { w.s.Close() })
	return w
}

// party is a reader or a group of them, with feeds of its own.
type party struct {
	owner store.Owner
	feeds int
	days  int  // between two reads of a feed
	new   bool // other feeds each day
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) record(url string) (r store.Record, known bool) {
	records, err := w.s.Lookup(w.t.Context(), []store.ID{store.IDOf(url)})
	w.must(err)
	if len(records) == 0 {
		return r, false
	}
	return records[0], true
}

// claim asks for the poll of a feed.
func (w *world) claim(url string, by store.Owner, host store.Host) store.Lease {
	lease, err := w.s.Claim(w.t.Context(), store.Claim{
		ID: store.IDOf(url), URL: url, Hold: time.Hour, By: by, Configured: by == store.Operator, Host: host, Queue: true, Prefetch: true,
	})
	w.must(err)
	return lease
}

// commit stores the outcome of a poll.
func (w *world) commit(l store.Lease, in time.Duration, size int) {
	o := store.Outcome{ID: l.ID, Token: l.Token, In: in, Hold: time.Hour, State: store.StateFresh, Host: l.Host}
	if size > 0 {
		o.Body = &store.Body{Version: l.Version + 1, Coding: "identity", Data: make([]byte, size)}
	}
	w.must(w.s.Commit(w.t.Context(), o))
}

func (w *world) touch(url string, by store.Owner) {
	w.must(w.s.Touch(w.t.Context(), map[store.ID]store.Asked{store.IDOf(url): {By: []store.Owner{by}}}))
}

// read asks for a feed as a reader of an owner. It reports whether the store had a version.
func (w *world) read(url string, by store.Owner, size int) bool {
	r, known := w.record(url)
	served := known && r.Version != 0
	if !known || r.In <= 0 && !served {
		w.commit(w.claim(url, by, store.Host{}), time.Hour, size)
	}
	w.touch(url, by)
	return served
}

func named(kind store.Kind, n int) store.Owner { return store.OwnerOf(kind, fmt.Sprint(n)) }

// Whatever strangers do to a full disk for weeks, what the operator, tokens and shields read is
// served from the store. Among strangers, what is read on several days is not displaced by what was
// invented today.
func TestStrangersDisplaceNoOne(t *testing.T) {
	const size = 20_000
	const disk = 60 * 22_000 // of which honest readers need two thirds
	invented := store.OwnerOf(store.KindShield, "blog")
	honest := map[string]party{
		"operator":     {owner: store.Operator, feeds: 5, days: 1},
		"token":        {owner: named(store.KindToken, 1), feeds: 10, days: 1},
		"weekly token": {owner: named(store.KindToken, 2), feeds: 4, days: 7},
		"shield":       {owner: invented, feeds: 15, days: 1},
	}
	public := party{owner: named(store.KindPublic, -1), feeds: 4, days: 1}
	for name, attack := range map[string]struct {
		parties  []party
		withDays bool // the public reader keeps its feeds
	}{
		"10 networks with 6 new feeds a day":            {attackers(10, 6, true), true},
		"20 networks with the same 6 feeds each day":    {attackers(20, 6, false), false},
		"60 networks with the same 2 feeds each day":    {attackers(60, 2, false), false},
		"30 invented addresses at the shield, each day": {[]party{{owner: invented, feeds: 30, new: true}}, false},
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
				parties := honest
				for of, p := range parties {
					for n := range p.feeds {
						if (day+n)%p.days == 0 {
							asks = append(asks, ask{of, fmt.Sprintf("https://%s.test/%d", of, n), p.owner})
						}
					}
				}
				for n := range public.feeds {
					asks = append(asks, ask{"public", fmt.Sprintf("https://public.test/%d", n), public.owner})
				}
				if day >= began {
					for i, p := range attack.parties {
						for n := range p.feeds {
							url := fmt.Sprintf("https://attack%d.test/%d", i, n)
							if p.new {
								url += fmt.Sprint("/", day)
							}
							asks = append(asks, ask{"", url, p.owner})
						}
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
						_, err := w.s.Trim(t.Context(), disk)
						w.must(err)
					}
					w.now = w.now.Add(24 * time.Hour / time.Duration(len(asks)))
				}
				_, err := w.s.Sweep(t.Context(), store.SweepQuery{Idle: 90 * 24 * time.Hour, Unread: 24 * time.Hour})
				w.must(err)
			}
			if !attack.withDays {
				delete(missed, "public")
			}
			if len(missed) > 0 {
				t.Errorf("not served from the store: %v of %v", missed, read)
			}
		})
	}
}

func attackers(networks, feeds int, new bool) (all []party) {
	for n := range networks {
		all = append(all, party{owner: named(store.KindPublic, n), feeds: feeds, new: new})
	}
	return all
}

// Twenty networks ask for any number of new addresses of one host, each of which gives a feed. The
// feeds of the operator and of a token are polled within seconds all the same. A new subscription of the token
// waits for those of them that are due, and no longer for the networks.
func TestSlotsOfOneHost(t *testing.T) {
	const networks, spacing = 20, 2 * time.Second
	w := newWorld(t)
	host := store.Host{Site: "busy.test", Spacing: spacing}
	token := named(store.KindToken, 1)
	type feed struct {
		name     string
		by       store.Owner
		interval time.Duration
		due      time.Time
	}
	feeds := make(map[string]*feed)
	for day := range 3 {
		for i := range 25 { // always in the same order, as that decides when they are due
			url, f := fmt.Sprintf("https://busy.test/%d", i), &feed{name: "token", by: token, interval: time.Hour}
			if i%5 == 0 {
				f = &feed{name: "operator", by: store.Operator, interval: 10 * time.Minute}
			}
			l := w.claim(url, f.by, store.Host{})
			l.Host = host
			f.due = w.now.Add(f.interval / time.Duration(i+1))
			w.commit(l, f.due.Sub(w.now), 100)
			w.touch(url, f.by)
			feeds[url] = f
		}
		if day < 2 {
			w.now = w.now.Add(24 * time.Hour)
		}
	}

	type reader struct { // whose polls wait one behind the other
		by    store.Owner
		urls  []string
		since []time.Time
	}
	readers := make([]*reader, networks+1)
	for i := range readers {
		readers[i] = &reader{by: named(store.KindPublic, i)}
	}
	readers[networks].by = token
	longest := make(map[string]time.Duration)
	granted := func(l store.Lease) {
		if f := feeds[l.URL]; f != nil {
			longest[f.name] = max(longest[f.name], w.now.Sub(f.due))
			f.due = w.now.Add(f.interval)
			w.commit(l, f.interval, 0)
			return
		}
		for _, r := range readers {
			if len(r.urls) > 0 && r.urls[0] == l.URL {
				if r.by == token {
					longest["new"] = max(longest["new"], w.now.Sub(r.since[0]))
				}
				r.urls, r.since = r.urls[1:], r.since[1:]
			}
		}
		w.commit(l, 20*time.Minute, 100)
	}
	for asked := range 600 { // for 20 minutes
		for i, r := range readers {
			n := 0
			switch {
			case i < networks && asked == 0:
				n = 60
			case i < networks && asked%5 == 0, i == networks && asked%75 == 10:
				n = 1
			}
			for range n {
				r.urls = append(r.urls, fmt.Sprintf("https://busy.test/?s=%d-%d-%d", i, asked, len(r.urls)))
				r.since = append(r.since, w.now)
			}
			if len(r.urls) > 0 {
				if l := w.claim(r.urls[0], r.by, host); l.Denied == "" {
					granted(l)
				}
			}
		}
		leases, _, err := w.s.ClaimDue(t.Context(), store.DueQuery{Limit: 10})
		w.must(err)
		for _, l := range leases {
			granted(l)
		}
		w.now = w.now.Add(spacing)
	}
	for name, most := range map[string]time.Duration{"operator": 4 * spacing, "token": 4 * spacing, "new": 8 * spacing} {
		if longest[name] > most || longest[name] == 0 {
			t.Errorf("%s: a poll waited %v, want %v at most", name, longest[name], most)
		}
	}
}

// One request of someone with a name, followed by strangers' for weeks, does not make a feed established. The days on
// which such an owner asks do.
func TestStrangersLiftNoFeed(t *testing.T) {
	w := newWorld(t)
	const url = "https://stranger.test/"
	token, public := named(store.KindToken, 1), named(store.KindPublic, 1)
	rank := func() store.Rank {
		r, _ := w.record(url)
		return r.Rank
	}
	for day := range 5 {
		if w.read(url, public, 100); day == 4 && rank() != store.RankPublic {
			t.Errorf("read by a stranger on five days: rank %d", rank())
		}
		w.now = w.now.Add(24 * time.Hour)
	}
	w.read(url, token, 100)
	for day := range 28 {
		if w.now = w.now.Add(24 * time.Hour); rank() != store.RankNamedNew {
			t.Fatalf("%d days after the token asked once: rank %d", day, rank())
		}
		w.read(url, public, 100)
	}
	for range 3 {
		w.read(url, token, 100)
		w.now = w.now.Add(24 * time.Hour)
	}
	if rank() != store.RankNamed {
		t.Errorf("after three days of the token: rank %d", rank())
	}
}
