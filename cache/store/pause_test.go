// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// site is a host with feeds of all ranks.
type site struct {
	*world
	host   store.Host
	owners map[string]store.Owner
}

// newSite makes feeds of each rank at a host: they were read for three days if their rank is of established ones.
func newSite(t *testing.T, each int) *site {
	s := &site{newWorld(t), store.Host{Name: "www.site.test", Domain: "site.test", Spacing: 2 * time.Second}, make(map[string]store.Owner)}
	for day := range 3 {
		for n := range each {
			for rank, owner := range map[int]store.Owner{
				1: store.Operator, 2: named(store.KindToken, n), 3: named(store.KindAddress, n), 4: named(store.KindPublic, n), 5: named(store.KindPublic, 100+n),
			} {
				if day == 2 || rank == 2 || rank == 4 {
					url := fmt.Sprintf("https://www.site.test/%d/%d", rank, n)
					s.read(url, owner, 100)
					s.owners[url] = owner
				}
			}
		}
		s.now = s.now.Add(24 * time.Hour)
	}
	for url, owner := range s.owners {
		if r, _ := s.record(url); int(r.Rank) != int(url[len("https://www.site.test/")]-'0') {
			t.Fatalf("%s has rank %d", url, r.Rank)
		}
		s.answer(s.grant(url, owner), 0)
		s.now = s.now.Add(s.host.Spacing)
	}
	return s
}

// grant claims the poll of a feed, which has to be granted.
func (s *site) grant(url string, by store.Owner) store.Lease {
	s.t.Helper()
	l := s.ask(url, by)
	if l.Denied != "" {
		s.t.Fatalf("%s: %+v", url, l)
	}
	return l
}

func (s *site) ask(url string, by store.Owner) store.Lease {
	lease, err := s.s.Claim(s.t.Context(), store.Claim{
		ID: store.IDOf(url), URL: url, Hold: 10 * time.Minute, By: by, Configured: by == store.Operator, Host: s.host, Prefetch: true,
	})
	s.must(err)
	return lease
}

// answer commits a good answer, or a refusal for so long; negative: it does not say for how long.
func (s *site) answer(l store.Lease, refused time.Duration) {
	o := store.Outcome{ID: l.ID, Token: l.Token, In: 10 * time.Minute, Hold: 10 * time.Minute, State: store.StateFresh, Host: l.Host}
	switch {
	case refused == 0:
		o.Good = []policy.Good{{Host: s.host}}
		o.Body = &store.Body{Version: l.Version + 1, Coding: "identity", Data: []byte("feed")}
	default:
		o.Pauses = []store.Pause{{Scope: "host " + s.host.Name, Domain: s.host.Domain, Why: policy.HintHostCooldown, Limited: true, For: max(0, refused)}}
		o.NotBefore = max(refused, time.Hour)
		o.In = o.NotBefore
	}
	s.must(s.s.Commit(s.t.Context(), o))
}

// waiting returns the ranks whose feeds wait for a pause of the host, and for how long in minutes.
func (s *site) waiting() (waits [6]int) {
	for rank := 1; rank <= 5; rank++ {
		url := fmt.Sprintf("https://www.site.test/%d/0", rank)
		s.now = s.now.Add(s.host.Spacing)
		switch l := s.ask(url, s.owners[url]); l.Denied {
		case "":
			s.must(s.s.Commit(s.t.Context(), store.Outcome{ID: l.ID, Token: l.Token, Hold: l.Hold, Host: s.host}))
		case store.DeniedPaused:
			waits[rank] = int(l.Wait.Round(time.Minute) / time.Minute)
			if l.Pause.Why != policy.HintHostCooldown || l.Pause.Rank == 0 || l.Pause.Rank > rank || l.Pause.URL == "" {
				s.t.Errorf("rank %d waits because of %+v", rank, l.Pause)
			}
		default:
			s.t.Fatalf("%s: %+v", url, l)
		}
	}
	return waits
}

// A refusal holds for feeds of its rank and below. It lasts an hour; twice as long with each further one, unless
// a good answer to a feed of the rank or a better one has come in between. It is never longer than was asked.
func TestRefusalsByRank(t *testing.T) {
	s := newSite(t, 8)
	s.now = s.now.Add(time.Hour)
	of := make(map[int]int)
	answer := func(rank int, refused time.Duration) {
		of[rank]++
		url := fmt.Sprintf("https://www.site.test/%d/%d", rank, of[rank])
		s.now = s.now.Add(s.host.Spacing)
		s.answer(s.grant(url, s.owners[url]), refused)
	}
	for _, step := range []struct {
		rank    int
		refused time.Duration // 0: a good answer
		want    [6]int
	}{
		{3, 7 * 24 * time.Hour, [6]int{3: 60, 4: 60, 5: 60}},
		{2, 7 * 24 * time.Hour, [6]int{2: 60, 3: 60, 4: 60, 5: 60}},
		{1, 0, [6]int{}}, // the host does not refuse everything
		{3, -1, [6]int{3: 60, 4: 60, 5: 60}},
		{0, 0, [6]int{}}, // an hour passes
		{4, 0, [6]int{}}, // of a lower rank: that changes nothing
		{3, -1, [6]int{3: 120, 4: 120, 5: 120}},
		{0, 0, [6]int{3: 60, 4: 60, 5: 60}},
		{0, 0, [6]int{}},
		{3, 10 * time.Minute, [6]int{3: 10, 4: 10, 5: 10}},
		{0, 0, [6]int{}},
		{3, 7 * 24 * time.Hour, [6]int{3: 480, 4: 480, 5: 480}},
		{2, 0, [6]int{}},
		{3, 7 * 24 * time.Hour, [6]int{3: 60, 4: 60, 5: 60}},
	} {
		if step.rank == 0 {
			s.now = s.now.Add(time.Hour)
		} else {
			answer(step.rank, step.refused)
		}
		if got := s.waiting(); got != step.want {
			t.Errorf("after rank %d, refused for %v: waits of %v minutes, want %v", step.rank, step.refused, got, step.want)
		}
	}
}

// A host refuses everything for a day. All its feeds find out, of all ranks and on three nodes, with few
// requests and at most one for each URL.
func TestSiteRefusesForADay(t *testing.T) {
	for seed := range uint64(5) {
		s := newSite(t, 8)
		random := rand.New(rand.NewPCG(seed, 1))
		asked := make(map[string]int)
		all := 0
		for began := s.now; s.now.Sub(began) < 24*time.Hour; s.now = s.now.Add(30 * time.Second) {
			for range 3 {
				leases, _, err := s.s.ClaimDue(t.Context(), store.DueQuery{Limit: 1 + random.IntN(3)})
				s.must(err)
				for _, l := range leases {
					asked[l.URL]++
					all++
					s.answer(l, 24*time.Hour-s.now.Sub(began))
				}
			}
			for url, by := range s.owners {
				if random.IntN(100) == 0 { // a reader
					if l := s.ask(url, by); l.Denied == "" {
						asked[l.URL]++
						all++
						s.answer(l, 24*time.Hour-s.now.Sub(began))
					}
				}
			}
		}
		for url, n := range asked {
			if n > 1 {
				t.Errorf("%s was asked %d times", url, n)
			}
		}
		if all > 15 || all == 0 {
			t.Errorf("%d requests of 40 feeds, want 15 at most", all)
		}
	}
}

// A good answer ends the pause of a refusal only if its own poll was claimed later.
func TestGoodAnswerToAnEarlierRequest(t *testing.T) {
	s := newSite(t, 5)
	s.now = s.now.Add(time.Hour)
	claim := func(n int) store.Lease {
		s.now = s.now.Add(s.host.Spacing)
		url := fmt.Sprintf("https://www.site.test/3/%d", n)
		return s.grant(url, s.owners[url])
	}
	early, late := claim(1), claim(2)
	s.answer(late, -1)
	s.answer(early, 0)
	if got, want := s.waiting(), [6]int{3: 60, 4: 60, 5: 60}; got != want {
		t.Errorf("after a good answer to an earlier request: waits of %v minutes, want %v", got, want)
	}
	s.now = s.now.Add(2 * time.Hour)
	early, late = claim(3), claim(4)
	s.answer(early, -1)
	s.answer(late, 0)
	if got := s.waiting(); got != [6]int{} {
		t.Errorf("after a good answer to a later request: waits of %v minutes", got)
	}
}
