// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const day = 24 * time.Hour

// polled is a feed of a simulated site, and how the site answers.
type polled struct {
	Feed
	interval time.Duration
	refuses  bool // each answer is a 429 without a time
	exhausts bool // each answer says that no request is left for ten minutes

	asked    bool // a reader wants it
	refusals int
	polls    int
	first    time.Duration // the first poll
	latest   time.Duration // the most that a poll was late
}

// simulation polls feeds of sites for a time, and tells the queue what they answer.
type simulation struct {
	*testing.T
	q      *Queue
	random *rand.Rand
	feeds  map[ID]*polled
	order  []*polled
	queued map[ID]bool
	each   func(now time.Duration) (next time.Duration) // is called again at the moment it returns, and after each poll
}

func simulate(t *testing.T, feeds ...*polled) *simulation {
	s := &simulation{
		T: t, q: New(operator), random: rand.New(rand.NewPCG(1, 2)),
		feeds: make(map[ID]*polled), queued: make(map[ID]bool),
		each: func(time.Duration) time.Duration { return math.MaxInt64 },
	}
	for _, f := range feeds {
		f.Due = s.between(0, f.interval)
		s.add(f)
	}
	return s
}

func (s *simulation) add(f *polled) {
	if f.ID == (ID{}) {
		f.ID = numbered(len(s.order) + 1)
	}
	s.feeds[f.ID] = f
	s.order = append(s.order, f)
}

// between returns a random time.
func (s *simulation) between(least, most time.Duration) time.Duration {
	return least + time.Duration(s.random.Float64()*float64(most-least))
}

func (s *simulation) run(until time.Duration) {
	var now time.Duration
	for now < until {
		next := s.each(now)
		for _, f := range s.order {
			switch {
			case s.queued[f.ID]:
			case f.Due > now:
				next = min(next, f.Due)
			case f.asked:
				s.queued[f.ID] = true
				s.q.Wait(f.Feed)
			default:
				s.queued[f.ID] = true
				s.q.Due(f.Feed)
			}
		}
		taken := s.q.Next(now, 100)
		for _, f := range taken {
			s.poll(s.feeds[f.ID], now)
		}
		if len(taken) == 0 {
			now = min(next, s.q.When(now))
		}
	}
}

func (s *simulation) poll(f *polled, now time.Duration) {
	delete(s.queued, f.ID)
	if f.polls++; f.polls == 1 {
		f.first = now
	}
	f.latest = max(f.latest, now-f.Due)
	s.q.Asked(f.Site, f.Owner, now, now+spacing)
	f.asked = false
	f.Due = now + s.between(f.interval, f.interval*11/10)
	switch {
	case f.refuses:
		s.q.Hold(f.Site, true, now+10*time.Minute, f.Owner)
		f.Due = now + min(time.Hour<<min(f.refusals, 5), day)
		f.refusals++
		s.q.Paused(f.ID)
	case f.exhausts:
		s.q.Hold(f.Site, false, now+10*time.Minute, 0)
		s.q.Paused(f.ID)
	default:
		f.New = false
		s.q.Answered(f.ID)
	}
}

// Feeds of the operator keep their pace although a guest always has 50 readers waiting for first polls.
func TestOperatorHasEverySecondSlot(t *testing.T) {
	var feeds []*polled
	for range 100 {
		feeds = append(feeds, &polled{Feed: Feed{Site: "s", Owner: operator}, interval: time.Hour})
	}
	s := simulate(t, feeds...)
	for _, f := range feeds {
		f.Due = 0
	}
	guests := 0
	s.each = func(now time.Duration) time.Duration {
		for ; len(s.q.waiters) < 50; guests++ {
			f := &polled{Feed: Feed{ID: numbered(1_000_000 + guests), Site: "s", Owner: alice, New: true, Due: now}, interval: 1000 * day}
			s.feeds[f.ID] = f
			s.q.Wait(f.Feed)
		}
		return math.MaxInt64
	}
	s.run(6 * time.Hour)
	polls, latest := 0, time.Duration(0)
	for _, f := range feeds {
		polls += f.polls
		latest = max(latest, f.latest)
	}
	if polls < 600 || latest > 400*time.Second {
		t.Errorf("%d polls of 600, the latest after %v", polls, latest)
	}
	t.Logf("%d polls, the latest after %v; %d of guests", polls, latest, guests-50)
}

// A site with thousands of feeds does not keep others from their polls.
func TestSiteWithManyFeeds(t *testing.T) {
	const feeds, big, sites = 30_000, 3_000, 15_000
	q, random := New(operator), rand.New(rand.NewPCG(1, 2))
	for i := range feeds { // those of the big site have been due the longest
		site := "big"
		if i >= big {
			site = fmt.Sprint(random.IntN(sites))
		}
		q.Due(Feed{ID: numbered(i), Site: site, Owner: operator, Due: time.Duration(i)})
	}
	var others, all time.Duration
	for now := q.When(0); now < math.MaxInt64; now = q.When(now) {
		for _, f := range q.Next(now, 64) {
			q.Asked(f.Site, f.Owner, now, now+spacing)
			if all = now; f.Site != "big" {
				others = now
			}
		}
	}
	t.Logf("others were done after %v, all after %v", others, all)
	// A 120th of what is due starts each second: all but a tenth has started after 120 s x ln 10 = 276 s.
	if others > 290*time.Second || all > big*spacing {
		t.Error("too late")
	}
}

// A guest who brings addresses that are refused delays a new feed of others, and of the same owner, by a few hours
// at most.
func TestDeadAddressesDelayNewFeeds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		guest Owner
		most  time.Duration
	}{
		{"guest with a token", bob, 20 * time.Minute},
		{"guest of the same owner", alice, 4 * time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var feeds []*polled
			for range 5 {
				feeds = append(feeds, &polled{Feed: Feed{Site: "s", Owner: operator}, interval: 6 * time.Hour})
			}
			for range 3 {
				feeds = append(feeds, &polled{Feed: Feed{Site: "s", Owner: alice}, interval: time.Hour})
			}
			s := simulate(t, feeds...)
			var added []*polled
			const start = 10*time.Hour + 5*time.Minute
			var asks []time.Duration // when their readers ask again
			for i := range 3 {
				f := &polled{Feed: Feed{Site: "s", Owner: alice, New: true, Due: start + time.Duration(i)*7*time.Minute}, interval: time.Hour, asked: true}
				added, asks = append(added, f), append(asks, f.Due)
				s.add(f)
			}
			dead := 0
			ask := func(now time.Duration) {
				dead++
				s.add(&polled{Feed: Feed{Site: "s", Owner: tt.guest, New: true, Due: now}, refuses: true, asked: true})
			}
			another := 8 * time.Hour
			s.each = func(now time.Duration) (next time.Duration) {
				for ; now >= another; another += s.between(5*time.Minute, 15*time.Minute) {
					for ask(now); dead < 50; {
						ask(now)
					}
				}
				next = another
				for i, f := range added {
					if now >= asks[i] && f.polls == 0 {
						s.q.Wait(f.Feed)
						s.queued[f.ID] = true
						asks[i] += s.between(50*time.Minute, 70*time.Minute)
					}
					if f.polls == 0 {
						next = min(next, asks[i])
					}
				}
				return next
			}
			s.run(2 * day)
			for i, f := range added {
				delay := f.first - start - time.Duration(i)*7*time.Minute
				if t.Log("first poll after", delay); f.polls == 0 || delay > tt.most {
					t.Error("too late")
				}
			}
		})
	}
}

// Feeds of another owner that pause the site with each answer leave most polls to the others.
func TestFeedsThatPauseTheSite(t *testing.T) {
	var feeds []*polled
	for range 20 {
		feeds = append(feeds, &polled{Feed: Feed{Site: "s", Owner: operator}, interval: time.Hour})
	}
	good := feeds[:20]
	count := func(feeds []*polled) (polls int) {
		for _, f := range feeds {
			polls += f.polls
		}
		return polls
	}
	simulate(t, feeds...).run(7 * day)
	alone := count(good)
	for _, f := range feeds {
		f.polls = 0
	}
	for range 30 {
		feeds = append(feeds, &polled{Feed: Feed{Site: "s", Owner: alice}, interval: time.Hour, exhausts: true})
	}
	simulate(t, feeds...).run(7 * day)
	beside := count(good)
	if beside < alone*85/100 {
		t.Errorf("%d polls, and %d without such feeds", beside, alone)
	}
	t.Logf("%d polls, and %d without such feeds; %d of those", beside, alone, count(feeds[20:]))
}
