// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// hop asks to follow a redirect of a feed to another URL, with a floor of an hour.
func (w *world) hop(from, to string, first bool) store.Passage {
	p, err := w.s.Hop(w.t.Context(), store.Hop{
		ID: store.IDOf(to), From: store.IDOf(from), First: first, Floor: time.Hour, Yield: true, Host: store.Host{Name: "target.test", Domain: "target.test", Spacing: 2 * time.Second},
	})
	w.must(err)
	return p
}

// Each address of a feed that someone with a name adds works at once, though the URL to which all of them lead was
// just asked. After that the URL is asked once an hour, and each address has its turn. Strangers' addresses wait
// until the URL may be asked.
func TestAddressesOfOneFeed(t *testing.T) {
	const target = "https://target.test/t"
	for _, tt := range []struct {
		name  string
		owner store.Owner
		first int // addresses that get a version at once
	}{
		{"operator", store.Operator, 4}, {"token", named(store.KindToken, 1), 4}, {"strangers", named(store.KindPublic, 1), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			followed, had := make([]int, 4), 0
			address := func(n int) string { return fmt.Sprintf("https://%c.test/", 'a'+n) }
			waits := make([]time.Time, 4)
			var last time.Time
			for n := range 4 {
				w.claim(address(n), tt.owner, store.Host{})
				p := w.hop(address(n), target, true)
				if p.Denied == "" {
					had++
					followed[n], last = 1, w.now
					waits[n] = w.now.Add(time.Hour)
				} else if waits[n] = w.now.Add(p.Wait); p.Denied != store.DeniedNotDue || p.Wait > time.Hour || p.Wait < 50*time.Minute {
					t.Errorf("%s: %+v", address(n), p)
				}
				w.now = w.now.Add(3 * time.Second)
			}
			if had != tt.first {
				t.Errorf("%d addresses have a version, want %d", had, tt.first)
			}
			for began := w.now; w.now.Sub(began) < 40*time.Hour; w.now = w.now.Add(time.Minute) {
				for n := range 4 {
					if w.now.Before(waits[n]) {
						continue
					}
					p := w.hop(address(n), target, false)
					if waits[n] = w.now.Add(max(p.Wait, time.Hour)); p.Denied == "" {
						if followed[n]++; w.now.Sub(last) < time.Hour {
							t.Fatalf("the URL is asked %v after the last time", w.now.Sub(last))
						}
						last = w.now
					}
				}
			}
			for n, times := range followed {
				if times < 5 || times > 12 {
					t.Errorf("address %d was followed %d times in 40 hours: %v", n, times, followed)
				}
			}
		})
	}
}

// A poll by hand waits for its host, and a redirect is followed to its URL meanwhile: then nothing polls the feed before
// the interval has passed.
func TestRedirectWhileAPollByHandWaits(t *testing.T) {
	w := newWorld(t)
	host := store.Host{Name: "target.test", Spacing: 2 * time.Second}
	const url = "https://target.test/t"
	from := w.claim("https://a.test/", store.Operator, store.Host{Name: "a.test"})
	w.commit(w.claim(url, store.Operator, host), 24*time.Hour, 100)
	w.now = w.now.Add(2 * time.Hour)
	w.commit(w.claim("https://target.test/other", store.Operator, host), 24*time.Hour, 100) // the host is busy now
	byHand := store.Claim{ID: store.IDOf(url), URL: url, Hold: time.Hour, Floor: time.Hour, Configured: true, By: store.Operator, Queue: true, Prefetch: true, Host: host}
	ask := func() store.Lease {
		lease, err := w.s.Claim(t.Context(), byHand)
		w.must(err)
		return lease
	}
	if l := ask(); l.Denied != store.DeniedBusy {
		t.Fatalf("by hand: %+v", l)
	}
	w.now = w.now.Add(3 * time.Second)
	p, err := w.s.Hop(t.Context(), store.Hop{ID: store.IDOf(url), From: from.ID, Floor: time.Hour, Host: host, Prefetch: true})
	w.must(err)
	if p.Denied != "" {
		t.Fatalf("hop: %+v", p)
	}
	w.now = w.now.Add(3 * time.Second)
	if l := ask(); l.Denied != store.DeniedNotDue {
		t.Errorf("by hand again: %+v", l)
	}
	leases, _, err := w.s.ClaimDue(t.Context(), store.DueQuery{Limit: 10})
	w.must(err)
	for _, l := range leases {
		if l.ID == store.IDOf(url) {
			t.Errorf("in the background: %+v", l)
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

// A feed that redirects to its own URL, by way of another, is due again.
func TestRedirectToItself(t *testing.T) {
	w := newWorld(t)
	host := store.Host{Name: "a.test"}
	const url = "https://a.test/"
	l := w.claim(url, store.Operator, host)
	w.commit(l, time.Hour, 100)
	w.now = w.now.Add(2 * time.Hour)
	p, err := w.s.Hop(t.Context(), store.Hop{ID: l.ID, From: l.ID, Floor: time.Hour, Host: host})
	w.must(err)
	if p.Denied != "" {
		t.Fatalf("hop: %+v", p)
	}
	w.now = w.now.Add(2 * time.Hour)
	leases, _, err := w.s.ClaimDue(t.Context(), store.DueQuery{Limit: 10})
	w.must(err)
	if len(leases) != 1 || leases[0].ID != l.ID {
		t.Errorf("due: %+v", leases)
	}
}

// A feed that sleeps is polled in the background once a reader asks for it, though a redirect to it had to wait meanwhile.
func TestRedirectToAFeedThatSleeps(t *testing.T) {
	w := newWorld(t)
	host := store.Host{Name: "target.test"}
	const url = "https://target.test/"
	from := w.claim("https://a.test/", store.Operator, store.Host{Name: "a.test"})
	w.commit(w.claim(url, store.Operator, host), time.Hour, 100)
	w.now = w.now.Add(2 * time.Hour)
	due := func() []store.Lease {
		leases, _, err := w.s.ClaimDue(t.Context(), store.DueQuery{Limit: 10, Idle: time.Hour})
		w.must(err)
		return leases
	}
	if l := due(); len(l) != 0 {
		t.Fatalf("it does not sleep: %+v", l)
	}
	p, err := w.s.Hop(t.Context(), store.Hop{ID: store.IDOf(url), From: from.ID, Floor: 24 * time.Hour, Host: host})
	w.must(err)
	if p.Denied != store.DeniedNotDue {
		t.Fatalf("hop: %+v", p)
	}
	w.touch(url, store.Operator)
	if l := due(); len(l) != 1 || l[0].URL != url {
		t.Errorf("after a reader asked: %+v", l)
	}
}
