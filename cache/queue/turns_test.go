// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// slots drains a queue and returns for each owner at which of all polls it had its nth one, counted from 1.
func slots(q *Queue, n int) map[Owner][]int {
	had := make(map[Owner][]int)
	total := 0
	for now := q.When(0); now < math.MaxInt64; now = q.When(now) {
		for _, f := range q.Next(now, n) {
			total++
			had[f.Owner] = append(had[f.Owner], total)
			q.Asked(f.Site, f.Owner, now, now+spacing)
		}
	}
	return had
}

// An owner with thousands of sites costs others nothing: the operator has every second poll, others have theirs in turn.
func TestOwnersTakeTurnsAmongSites(t *testing.T) {
	q := New(operator)
	id := 0
	put := func(owner Owner, n int, due time.Duration) {
		for i := range n {
			id++
			q.Due(Feed{ID: numbered(id), Site: fmt.Sprintf("%d.%d.example", i, owner), Owner: owner, Due: due})
		}
	}
	put(alice, 5000, -time.Hour)
	put(operator, 1000, 0)
	put(bob, 100, 0)
	had := slots(q, 10)
	if last := had[operator][99]; last > 200 {
		t.Errorf("the operator had its hundredth poll at %d", last)
	}
	if last := had[bob][99]; last > 400 {
		t.Errorf("an owner had its hundredth poll at %d", last)
	}
	checkEmpty(t, q)
}

// An owner that has feeds at all the sites of others, and at thousands besides, has its turn at those sites too. That
// takes at most half of the polls the others would have: those were 300 and 450.
func TestOwnersTakeTurnsAtSharedSites(t *testing.T) {
	q := New(operator)
	id := 0
	put := func(owner Owner, site int, due time.Duration) {
		id++
		q.Due(Feed{ID: numbered(id), Site: fmt.Sprintf("%d.example", site), Owner: owner, Due: due})
	}
	for site := range 2000 {
		for i := range 3 {
			put(alice, site, -time.Hour)
			if site < 50 {
				put(operator, site, time.Duration(i))
				put(bob, site, time.Duration(i))
			}
		}
	}
	had := slots(q, 10)
	if last := had[operator][149]; last > 600 {
		t.Errorf("the operator had its last poll at %d", last)
	}
	if last := had[bob][149]; last > 1000 {
		t.Errorf("an owner had its last poll at %d", last)
	}
	t.Log(had[operator][149], had[bob][149], len(had[alice]))
}

// Among the sites of an owner those come first at which a reader waits, then those of which a feed has been due the longest.
func TestOrderAmongSites(t *testing.T) {
	q := New(operator)
	q.Due(feedOf("d", "1", alice, 3), feedOf("c", "2", alice, 2), feedOf("x", "3", alice, 1))
	q.Wait(feedOf("a", "3", alice, 9))
	q.Wait(feedOf("b", "4", alice, 8))
	var got string
	for range 5 {
		for _, f := range q.Next(0, 1) {
			got += nameOf(f)
		}
	}
	if got != "abcd" { // the third site is busy
		t.Errorf("got %s", got)
	}
}

// Polls of sites start at a rate, those of shields at once.
func TestStarts(t *testing.T) {
	const sites = 10_000
	for _, tt := range []struct{ due, burst, second int }{
		{100, 8, 16},
		{sites, 41, 82}, // a 120th of them
	} {
		q := New(operator)
		fill(q, tt.due, sites)
		for i := range 1000 {
			q.Wait(Feed{ID: numbered(sites + i), Owner: alice})
		}
		if got := len(q.Next(0, 10_000)) - 1000; got != tt.burst {
			t.Errorf("of %d, %d start at once, want about %d", tt.due, got, tt.burst)
		}
		if got := q.Next(0, 10); len(got) > 0 {
			t.Errorf("%d more start at once", len(got))
		}
		started := 0
		for now := q.When(0); now <= time.Second; now = q.When(now) {
			got := len(q.Next(now, 10_000))
			if got == 0 {
				t.Fatalf("none starts at %v", now)
			}
			started += got
		}
		if started < tt.second-2 || started > tt.second+1 {
			t.Errorf("of %d, %d start in a second, want %d", tt.due, started, tt.second)
		}
	}
}

// Feeds for which a reader waits start at the same rate.
func TestStartsOfReaders(t *testing.T) {
	q := New(operator)
	for i := range 100 {
		q.Wait(Feed{ID: numbered(i), Site: fmt.Sprint(i), Owner: alice})
	}
	started := 0
	for now := q.When(0); now <= time.Second; now = q.When(now) {
		started += len(q.Next(now, 100))
	}
	if started != 24 {
		t.Errorf("%d start within a second", started)
	}
}

// A feed that was taken goes back where it was.
func TestBack(t *testing.T) {
	q := New(operator)
	q.Wait(feedOf("a", "s", alice, 0))
	q.Wait(feedOf("b", "s", alice, 0))
	q.Due(feedOf("d", "s", alice, 7), feedOf("e", "t", alice, 8))
	taken := q.Next(0, 10)
	if len(taken) != 2 || q.Waits(taken[0].ID) {
		t.Fatalf("taken: %v", taken)
	}
	for _, f := range taken {
		if f.Waiting == (nameOf(f) == "e") {
			t.Errorf("%s waits: %v", nameOf(f), f.Waiting)
		}
		q.Back(f, time.Minute)
	}
	if got := q.When(0); got != time.Minute {
		t.Errorf("they are looked at after %v", got)
	}
	if got := q.Next(0, 10); len(got) > 0 {
		t.Errorf("at once: %v", got)
	}
	q.Wait(feedOf("a", "s", alice, 0))
	if got := drain(q, time.Hour); got != "a e b d" {
		t.Errorf("got %s", got)
	}
	checkEmpty(t, q)
}

// A feed without a site that was put back has its old place, at once.
func TestBackWithoutSite(t *testing.T) {
	q := New(operator)
	q.Wait(feedOf("f", "", alice, 3))
	q.Wait(feedOf("g", "", alice, 0))
	q.Back(q.Next(0, 1)[0], time.Minute)
	if got := q.When(0); got != 0 || !q.Waits(feedOf("f", "", 0, 0).ID) {
		t.Errorf("looked at after %v", got)
	}
	if got := q.Next(0, 1); len(got) != 1 || nameOf(got[0]) != "f" || !got[0].Waiting || got[0].Due != 3 {
		t.Errorf("got %+v", got)
	}
	if got := drain(q, time.Second); got != "g" {
		t.Errorf("got %s", got)
	}
	checkEmpty(t, q)
}

// A feed that was asked for again while it was taken waits once, at the better place.
func TestBackWhileItWaits(t *testing.T) {
	for _, fresh := range []bool{false, true} {
		q := New(operator)
		f, g := feedOf("f", "s", alice, 0), feedOf("g", "s", alice, 0)
		f.New, g.New = fresh, fresh
		q.Wait(f)
		f = q.Next(0, 1)[0]
		q.Wait(g)
		q.Wait(f)
		q.Back(f, 0)
		if got := drain(q, time.Hour); got != "f g" {
			t.Errorf("got %s", got)
		}
		checkEmpty(t, q)
	}
}

// A feed that goes back does not make its site free earlier than a poll that started meanwhile.
func TestBackAfterAnotherPoll(t *testing.T) {
	q := New(operator)
	q.Wait(feedOf("f", "s", alice, 0))
	f := q.Next(0, 1)[0]
	q.Asked("s", bob, 0, spacing)
	q.Back(f, 0)
	if got := q.When(0); got != spacing {
		t.Errorf("looked at after %v", got)
	}
}

// New feeds of a site that is ready, and waits for its turn among others, have their turn when their pause ends.
func TestHoldEndsWhileTheSiteIsReady(t *testing.T) {
	q := New(operator)
	for i := range 100 {
		q.Due(Feed{ID: numbered(i), Site: fmt.Sprint(i), Owner: alice})
	}
	q.Hold("s", true, time.Second, 0)
	q.Due(feedOf("a", "s", alice, 1))
	q.Wait(newFeedOf("n", "s", alice, 2))
	q.Next(0, 1)
	if got := q.Next(time.Second, 1); len(got) != 1 || nameOf(got[0]) != "n" {
		t.Errorf("got %v", got)
	}
}

func TestHold(t *testing.T) {
	q := New(operator)
	q.Due(feedOf("a", "s", alice, 0), newFeedOf("n", "s", alice, 0))
	q.Hold("s", false, time.Hour, 0)
	q.Hold("s", true, 2*time.Hour, alice)
	if got := q.When(0); got != time.Hour || q.Open("s") != got {
		t.Errorf("looked at after %v, and open after %v", got, q.Open("s"))
	}
	q.Hold("s", true, 2*time.Hour, 0) // the owner that caused it stays known
	q.Hold("s", false, 0, 0)          // the last fact counts
	if got := q.Next(0, 10); len(got) != 1 || nameOf(got[0]) != "a" {
		t.Errorf("after the end of the pause: %v", got)
	}
	q.Free("s")
	if got := q.When(0); got != 2*time.Hour {
		t.Errorf("the new one is looked at after %v", got)
	}
	q.Due(newFeedOf("m", "s", bob, 5)) // it goes before that of the owner that caused the pause
	if got := drain(q, 3*time.Hour); got != "m n" {
		t.Errorf("got %s", got)
	}
	checkEmpty(t, q)
}

// No more feeds of an owner are taken than it has room for, and others are not kept from their polls.
func TestRoom(t *testing.T) {
	q := New(operator)
	room := map[Owner]int{operator: 1, alice: 0, bob: 5}
	q.Room = func(o Owner) int { return room[o] }
	q.Due(feedOf("a", "s", alice, 0), feedOf("b", "t", alice, 0), feedOf("c", "", alice, 0))
	if got := q.Next(0, 10); len(got) > 0 {
		t.Errorf("without room: %v", got)
	}
	if got := q.When(0); got != math.MaxInt64 {
		t.Errorf("looked at after %v although there is no room", got)
	}
	q.Due(feedOf("o", "s", operator, 0), feedOf("p", "t", operator, 1), feedOf("q", "s", bob, 0))
	if got := q.Next(0, 10); len(got) != 1 || nameOf(got[0]) != "o" {
		t.Errorf("got %v, want one of the operator", got)
	}
	room[alice], room[operator] = 1, 0
	q.Asked("s", operator, 0, spacing)
	if got := drain(q, time.Hour); got != "c b a q" && got != "b c a q" {
		t.Errorf("got %v", got)
	}
}

// A site that waited too long for its turn among others gives its next slot to a redirect.
func TestRedirectBeforeSiteThatIsReady(t *testing.T) {
	q := New(operator)
	for i := range 100 {
		q.Due(Feed{ID: numbered(i), Site: fmt.Sprint(i), Owner: operator, Due: time.Duration(i)})
	}
	q.TakeHop("50", spacing, 0)
	q.HopWaits("50", 1, 0)
	q.Next(0, 100)
	q.Next(spacing, 1) // the site is ready, and has the next slot until twice the spacing
	q.Due(feedOf("late", "99", operator, -1))
	for now := 2 * spacing; now < time.Minute; now = q.When(now) {
		for _, f := range q.Next(now, 100) {
			if f.Site == "50" {
				t.Fatalf("a feed of the site was taken at %v", now)
			}
		}
	}
	if q.TakeHop("50", spacing, time.Minute) != 0 {
		t.Error("the slot is not for the redirect")
	}
	q.HopWaits("50", -1, time.Minute)
	if got := q.Next(time.Minute+spacing, 1); len(got) != 1 || got[0].Site != "50" {
		t.Errorf("after it: %v", got)
	}
}

// What was taken and is not polled counts for no start: sites of which no poll can start keep no other from one.
func TestBackGivesTheStartBack(t *testing.T) {
	q := New(operator)
	for i := range 100 {
		q.Due(Feed{ID: numbered(i), Site: fmt.Sprint(i), Owner: operator, Due: time.Duration(i)})
	}
	for range 20 {
		for _, f := range q.Next(0, 10) {
			if f.Due < 90 {
				q.Back(f, time.Second)
			} else {
				q.Asked(f.Site, f.Owner, 0, spacing)
			}
		}
	}
	if got := q.DueLen(); got != 92 {
		t.Errorf("%d are due, want 92", got)
	}
}

func TestFreeGivesTheStartBack(t *testing.T) {
	q := New(operator)
	for i := range 100 {
		q.Due(Feed{ID: numbered(i), Site: fmt.Sprint(i), Owner: operator})
	}
	for range 10 {
		for _, f := range q.Next(0, 8) {
			q.Free(f.Site)
		}
	}
	if q.DueLen() != 20 {
		t.Errorf("%d are left, want 20", q.DueLen())
	}
	site := q.Next(0, 8)[0].Site
	q.Free(site)
	q.Free(site)
	if got := q.Next(0, 8); len(got) != 1 {
		t.Errorf("%d start for one that does not", len(got))
	}
}

// A site that has no feeds in the queue is not forgotten before it is free, and its pause has ended.
func TestSitesAreRemembered(t *testing.T) {
	for name, until := range map[string]func(q *Queue){
		"it was asked":                 func(q *Queue) { q.Asked("s", alice, 0, time.Hour) },
		"it has a pause":               func(q *Queue) { q.Hold("s", false, time.Hour, 0) },
		"feeds without a version have": func(q *Queue) { q.Hold("s", true, time.Hour, 0) },
		"a redirect has taken a slot":  func(q *Queue) { q.TakeHop("s", time.Hour, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			q := New(operator)
			until(q)
			q.Next(time.Hour-1, 1) // forgets what need not be known
			q.Due(newFeedOf("a", "s", alice, 0))
			if when, got := q.When(time.Hour-1), q.Next(time.Hour-1, 1); when != time.Hour || len(got) > 0 {
				t.Errorf("got %v, and more after %v", got, when)
			}
			if got := q.Next(time.Hour, 1); len(got) != 1 {
				t.Errorf("got %v", got)
			}
		})
	}
}

// A site is not forgotten while its next slot is not for a redirect.
func TestSlotsAreRemembered(t *testing.T) {
	q := New(operator)
	q.TakeHop("s", spacing, 0)
	q.Next(spacing, 1) // forgets what need not be known
	q.Due(feedOf("a", "s", alice, 0))
	if wait := q.TakeHop("s", spacing, spacing); wait != spacing {
		t.Errorf("wait of %v", wait)
	}
}
