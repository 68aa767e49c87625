// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// answer is what a site says to a poll.
type answer struct {
	refused bool
	asked   time.Duration // of a refusal: how long it wants to be left alone; 0: it does not say
	limited time.Duration // above 0: a rate limit is used up for so long
	version bool          // it brings one
}

var (
	good    = answer{version: true}
	refusal = answer{refused: true}
)

// site is a site with feeds of the operator and of readers.
type site struct {
	*world
	host store.Host
}

func newSite(t *testing.T) *site {
	return &site{newWorld(t), store.Host{Site: "site.test", Spacing: 2 * time.Second}}
}

// feed makes the feed of a URL, which someone has asked for and which has a version, unless it is new.
func (s *site) feed(url string, isNew bool) {
	s.t.Helper()
	l := s.ask(url)
	if l.Denied != "" {
		s.t.Fatalf("%s: %+v", url, l)
	}
	if isNew {
		s.answer(l, answer{}, 0)
	} else {
		s.answer(l, good, 0)
	}
	s.now = s.now.Add(s.host.Spacing)
}

func (s *site) ask(url string) store.Lease {
	return s.claim(store.Claim{URL: url, Own: true, Configured: true, Host: s.host})
}

// answer commits what the site says. The next poll is after an interval, and not before the end of what was asked.
func (s *site) answer(l store.Lease, a answer, interval time.Duration) {
	o := store.Outcome{ID: l.ID, Token: l.Token, In: interval, State: store.StateFresh, Site: s.host.Site}
	switch {
	case a.limited > 0:
		o.Pauses = []store.Pause{{Site: s.host.Site, For: a.limited, Why: policy.HintRateLimit}}
		o.NotBefore = a.limited
	case a.refused:
		o.Pauses = []store.Pause{{Site: s.host.Site, For: a.asked, Why: policy.HintHostCooldown}}
		if o.NotBefore = a.asked; a.asked == 0 {
			o.NotBefore = time.Hour
		}
	}
	if !a.refused {
		o.Good = []string{s.host.Site}
	}
	if a.version {
		o.Body = &store.Body{Version: l.Version + 1, Coding: "identity", Data: []byte("x")}
	}
	s.must(s.s.Commit(s.t.Context(), o))
}

// paused returns how long feeds of the site wait, in minutes: those with a version and those without one.
func (s *site) paused() (all, fresh int) {
	pauses, err := s.s.Pauses(s.t.Context())
	s.must(err)
	for _, p := range pauses {
		minutes := int(p.For.Round(time.Minute) / time.Minute)
		if fresh = max(fresh, minutes); !p.New {
			all = minutes
		}
	}
	return all, fresh
}

// A refusal pauses the site for an hour, twice as long with each further one unless a good answer came in between, for a
// day at most, and never longer than it asked. The URL alone waits if it was refused before and the site has answered well
// since. A rate limit pauses it until its reset, for ten minutes at most.
func TestRefusals(t *testing.T) {
	const week = 7 * 24 * time.Hour
	s := newSite(t)
	for n := range 12 {
		s.feed(fmt.Sprint("https://site.test/", n), false)
	}
	fresh := 0
	for _, step := range []struct {
		what  string
		url   int // of a feed; -1: of a new one
		a     answer
		sleep time.Duration // before
		all   int           // minutes
		fresh int
	}{
		{"a first refusal", 0, refusal, time.Hour, 60, 60},
		{"a second one in a row", 1, refusal, 61 * time.Minute, 120, 120},
		{"a third one, which asks for less", 2, answer{refused: true, asked: 10 * time.Minute}, 121 * time.Minute, 10, 10},
		{"a fourth one, which asks for more", 3, answer{refused: true, asked: week}, 11 * time.Minute, 480, 480},
		{"a good answer", 4, good, 481 * time.Minute, 0, 0},
		{"the doubling has ended", 5, refusal, time.Hour, 60, 60},
		{"a good answer", 4, good, 2 * time.Hour, 0, 0},
		{"a URL that was refused before", 5, refusal, 2 * time.Hour, 0, 0},
		{"a rate limit on a good answer", 6, answer{version: true, limited: time.Hour}, time.Minute, 10, 10},
		{"a rate limit with a refusal", 5, answer{refused: true, limited: 5 * time.Minute}, time.Hour, 5, 5},
		{"a new feed", -1, refusal, time.Hour, 0, 10},
		{"another one", -1, refusal, 11 * time.Minute, 0, 10},
		{"one that asks for less", -1, answer{refused: true, asked: 2 * time.Minute}, 11 * time.Minute, 0, 2},
		{"a rate limit of a new feed", -1, answer{version: true, limited: 3 * time.Minute}, time.Hour, 0, 3},
	} {
		s.now = s.now.Add(step.sleep)
		url := fmt.Sprint("https://site.test/", step.url)
		if step.url < 0 {
			fresh++
			url = fmt.Sprint("https://site.test/new/", fresh)
		}
		l := s.ask(url)
		if l.Denied != "" {
			t.Fatalf("%s: %+v", step.what, l)
		}
		s.answer(l, step.a, 0)
		if all, fresh := s.paused(); all != step.all || fresh != step.fresh {
			t.Errorf("%s: feeds wait %d minutes and new ones %d, want %d and %d", step.what, all, fresh, step.all, step.fresh)
		}
	}
}

// What a redirect led to, and no reader asked for, concerns its URL alone: anyone can make one.
func TestRefusalOfATarget(t *testing.T) {
	s := newSite(t)
	s.feed("https://site.test/good", false)
	target := "https://site.test/target"
	s.must(s.s.Restore(t.Context(), []store.Saved{{Record: store.Record{ID: store.IDOf(target), URL: target, Polled: -1, Asked: -1, First: -1, Site: s.host.Site}}}))
	s.answer(s.claim(store.Claim{URL: target, Host: s.host}), refusal, 0)
	if all, fresh := s.paused(); all+fresh != 0 {
		t.Errorf("feeds wait %d minutes and new ones %d", all, fresh)
	}
}

// polls makes the polls of a week of feeds that are due each hour, and returns how many were answered and how many refused.
func (s *site) polls(days int, answer func(url string) answer) (answered map[string]int, refused int) {
	answered = make(map[string]int)
	for end := s.now.Add(time.Duration(days) * 24 * time.Hour); s.now.Before(end); {
		due, err := s.s.Due(s.t.Context(), store.DueQuery{Limit: 100})
		s.must(err)
		wait := due.Wait
		for _, f := range due.Feeds {
			r, err := s.s.Lookup(s.t.Context(), []store.ID{f.ID})
			s.must(err)
			l := s.ask(r[0].URL)
			if l.Denied != "" {
				wait = min(wait, l.Wait)
				continue
			}
			a := answer(l.URL)
			if a.refused {
				refused++
			} else {
				answered[l.URL]++
			}
			s.answer(l, a, time.Hour)
		}
		s.now = s.now.Add(max(wait, time.Second))
	}
	return answered, refused
}

// A subscription that always answers 429 leaves the other feeds of its site at least 99 of 100 polls, and a site that
// refuses everything is asked seldom.
func TestDeadSubscription(t *testing.T) {
	const feeds, days = 20, 7
	for _, tt := range []struct {
		name    string
		dead    []string
		isNew   bool
		all     bool
		percent int
		refused int // at most
	}{
		{"none", nil, false, false, 99, 0},
		{"one that gave a version", []string{"https://site.test/dead"}, false, false, 99, days*24 + 1},
		{"one that never did", []string{"https://site.test/dead"}, true, false, 99, days*24 + 1},
		{"three that never did", []string{"https://site.test/dead", "https://site.test/dead2", "https://site.test/dead3"}, true, false, 99, 3*days*24 + 3},
		{"the whole site", nil, false, true, 0, 15},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			dead := make(map[string]bool)
			for n := range feeds {
				s.feed(fmt.Sprint("https://site.test/", n), false)
			}
			for _, url := range tt.dead {
				s.feed(url, tt.isNew)
				dead[url] = true
			}
			s.now = s.now.Add(time.Hour)
			answered, refused := s.polls(days, func(url string) answer {
				if dead[url] || tt.all {
					return refusal
				}
				return good
			})
			all := 0
			for _, n := range answered {
				all += n
			}
			if all < feeds*days*23*tt.percent/100 || refused > tt.refused { // 23: an interval and the turn of 20 feeds
				t.Errorf("%d polls of %d, and %d were refused, want %d at most", all, feeds*days*24, refused, tt.refused)
			}
		})
	}
}

// A site with a limit of 100 requests in ten minutes, which another user of the address uses up in each seventh, is asked
// one request into each of those at most.
func TestSharedLimit(t *testing.T) {
	s := newSite(t)
	for n := range 20 {
		s.feed(fmt.Sprint("https://site.test/", n), false)
	}
	const window = 10 * time.Minute
	used := make(map[int64]int)
	most := 0
	_, refused := s.polls(3, func(string) answer {
		n := s.now.UnixNano() / int64(window)
		left := time.Duration((n+1)*int64(window) - s.now.UnixNano())
		if used[n]++; n%7 == 0 {
			most = max(most, used[n])
			return answer{refused: true, limited: left}
		}
		return good
	})
	if most != 1 || refused == 0 {
		t.Errorf("%d refusals, %d of them in one window", refused, most)
	}
}

// A poll at a host with a spacing of its own waits for that since the last request to the site.
func TestSpacingOfAHost(t *testing.T) {
	s := newSite(t)
	s.feed("https://site.test/1", false)
	slow := store.Claim{URL: "https://slow.site.test/", Host: store.Host{Site: s.host.Site, Spacing: time.Minute}}
	if l := s.claim(slow); l.Denied != store.DeniedBusy || l.Wait != 58*time.Second {
		t.Errorf("the slow host: %+v, want busy for 58 s", l)
	}
	s.now = s.now.Add(58 * time.Second)
	if l := s.claim(slow); l.Denied != "" {
		t.Errorf("the slow host: %+v", l)
	}
	s.now = s.now.Add(2 * time.Second)
	if l := s.ask("https://site.test/2"); l.Denied != "" {
		t.Errorf("the other host: %+v", l)
	}
}

// A URL that redirects led to, and that asked to be left alone, is not asked by way of another redirect either.
func TestHopObeysThePauseOfItsURL(t *testing.T) {
	s := newSite(t)
	target, another := "https://other.test/feed", "https://other.test/another"
	l := s.ask("https://site.test/1")
	s.must(s.s.Commit(t.Context(), store.Outcome{ID: l.ID, Token: l.Token, In: time.Hour, Site: s.host.Site, Hops: map[store.ID]time.Duration{store.IDOf(target): 72 * time.Hour}}))
	hop := func(url string) store.Lease {
		return s.claim(store.Claim{URL: url, Hop: true, Host: store.Host{Site: "other.test", Spacing: 2 * time.Second}})
	}
	for range 2 {
		if l := hop(target); l.Denied != store.DeniedPaused || l.Wait < 71*time.Hour || l.Wait > 72*time.Hour || l.Pause.For != l.Wait {
			t.Errorf("the hop: %+v, want to wait 72 h", l)
		}
		if l := hop(another); l.Denied != "" {
			t.Errorf("a hop to another URL: %+v", l)
		}
		s.now = s.now.Add(time.Minute)
	}
	s.now = s.now.Add(72 * time.Hour)
	if l := hop(target); l.Denied != "" {
		t.Errorf("after the pause: %+v", l)
	}
}
