// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"math"
	"strings"
	"testing"
	"time"
)

// Redirects and other polls share the slots of a site.
func TestRedirects(t *testing.T) {
	for _, tt := range []struct {
		name           string
		due, redirects int
		held           bool   // what is due may not be polled
		want           string // who has each slot
	}{
		{"every second slot while other polls wait", 4, 6, false, "rprprprprr"},
		{"the next slot, before the queue", 3, 1, false, "rppp"},
		{"every slot if no other polls wait", 0, 3, false, "rrr"},
		{"every slot if those that wait are paused", 1, 3, true, "rrr p"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := New(operator)
			for i := range tt.due {
				q.Due(Feed{ID: numbered(i), Site: "s", Owner: operator, New: tt.held})
			}
			if tt.held {
				q.Hold("s", true, time.Minute, 0)
			}
			q.HopWaits("s", tt.redirects, 0)
			left, got, last := tt.redirects, "", time.Duration(0)
			at := time.Duration(0) // when the redirects look again
			for now := time.Duration(0); now < math.MaxInt64; now = min(at, q.When(now)) {
				for _, f := range q.Next(now, 10) {
					if tt.held {
						got += " "
					} else {
						last = now
					}
					got += "p"
					q.Asked(f.Site, f.Owner, now, now+spacing)
				}
				if now < at {
					continue
				}
				wait := time.Duration(math.MaxInt64) - now
				if left > 0 {
					if wait = q.TakeHop("s", spacing, now); wait == 0 {
						got += "r"
						last = now
						left--
						q.HopWaits("s", -1, now)
						wait = spacing
					}
				}
				at = now + wait
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if want := time.Duration(len(strings.TrimSuffix(tt.want, " p"))-1) * spacing; last != want {
				t.Errorf("the last slot was at %v, want %v: some were lost", last, want)
			}
			checkEmpty(t, q)
		})
	}
}

// A redirect to a site with a long queue waits for two slots at most.
func TestRedirectToABusySite(t *testing.T) {
	q := New(operator)
	fill(q, 1799, 1)
	site := "site0.example"
	var since, at, longest time.Duration // since when a redirect waits, and when it looks again
	next, redirects := 3*time.Second, 0
	for now := time.Duration(0); now < 30*time.Minute; now += 50 * time.Millisecond {
		if at == 0 && now >= next {
			since, at = now, now
			next += 7 * time.Second
			q.HopWaits(site, 1, now)
		}
		for _, f := range q.Next(now, 1) {
			q.Asked(f.Site, f.Owner, now, now+spacing)
		}
		if at == 0 || now < at {
			continue
		}
		if wait := q.TakeHop(site, spacing, now); wait > 0 {
			at = now + wait
			continue
		}
		q.HopWaits(site, -1, now)
		longest, at = max(longest, now-since), 0
		redirects++
	}
	if longest > 2*spacing+100*time.Millisecond || redirects < 250 {
		t.Errorf("%d redirects, of which one has waited for %v", redirects, longest)
	}
}

// A redirect that cannot use its slot gives it back, and another one has it, or another poll if no redirect waits.
func TestGiveHop(t *testing.T) {
	q := New(operator)
	q.Due(feedOf("a", "s", operator, 0))
	q.HopWaits("s", 1, 0)
	if wait := q.TakeHop("s", spacing, 0); wait != 0 {
		t.Fatalf("wait of %v", wait)
	}
	if wait := q.TakeHop("s", spacing, 0); wait != 2*spacing { // the next slot is for the feed
		t.Errorf("wait of %v for the slot after the next", wait)
	}
	q.GiveHop("s")
	if got := q.Next(0, 1); len(got) > 0 {
		t.Errorf("the slot went to %v", got)
	}
	if wait := q.TakeHop("s", spacing, 0); wait != 0 {
		t.Errorf("wait of %v for the slot that was given back", wait)
	}
	q.GiveHop("s")
	q.HopWaits("s", -1, 0)
	if got := q.Next(0, 1); len(got) != 1 {
		t.Error("the slot was lost")
	}
	if wait := q.TakeHop("s", spacing, 0); wait != spacing { // the claim of the feed has the slot
		t.Errorf("wait of %v at a busy site", wait)
	}
	q.Asked("s", operator, 0, spacing)
	q.Hold("s", false, time.Hour, 0)
	if wait := q.TakeHop("s", spacing, 0); wait != time.Hour {
		t.Errorf("wait of %v at a site that is paused", wait)
	}
	checkEmpty(t, q)
}

// A poll that Next did not choose has a slot too.
func TestRedirectAfterAnotherPoll(t *testing.T) {
	q := New(operator)
	q.Due(feedOf("a", "s", operator, 0))
	q.HopWaits("s", 1, 0)
	q.TakeHop("s", 10*spacing, 0)
	q.Asked("s", operator, 0, spacing)
	q.GiveHop("s") // too late
	if wait := q.TakeHop("s", spacing, 0); wait != spacing {
		t.Errorf("wait of %v", wait)
	}
}

// A site is not forgotten while a redirect waits for it.
func TestRedirectWaits(t *testing.T) {
	q := New(operator)
	q.HopWaits("s", 1, 0)
	q.Next(time.Minute, 1)
	q.Due(feedOf("a", "s", operator, 0))
	if got := q.Next(time.Minute, 1); len(got) > 0 {
		t.Errorf("%v before the redirect", got)
	}
}

// The owner of a feed whose site gives its slot to a redirect keeps its turn.
func TestRedirectTakesNoTurnOfOthers(t *testing.T) {
	q := New(operator)
	q.HopWaits("1", 1, 0)
	q.Due(feedOf("a", "1", operator, 0), feedOf("b", "2", operator, 1), feedOf("c", "3", alice, 0))
	if got := q.Next(0, 1); len(got) != 1 || nameOf(got[0]) != "b" {
		t.Errorf("got %v", got)
	}
}
