// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
)

func firstReservation(t *testing.T, s cache.Store) {
	got := reserve(t, s, 1, 0)
	want := cache.Schedule{Next: start.Add(time.Hour), Token: 1}
	if !sameSchedule(got, want) {
		t.Errorf("granted %+v, want %+v", got, want)
	}
	id, url := feed(1)
	wantRecord(t, s, 1, cache.Record{ID: id, URL: url, Schedule: want})
	_, err := s.Body(t.Context(), id)
	wantError(t, "Body before the first commit", err, cache.ErrNoBody)
}

func otherTokenDenied(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	reserve(t, s, 1, 1)
	before := load(t, s, 1)
	for _, token := range []uint64{0, 1, 3, 1 << 63} {
		c := claim(1, token)
		c.Next = start.Add(24 * time.Hour)
		grants, err := s.Reserve(t.Context(), []cache.Claim{c})
		if err != nil {
			t.Fatalf("Reserve: %v", err)
		}
		if grants[0].OK || !sameSchedule(grants[0].Schedule, before.Schedule) {
			t.Errorf("claim on token %d = %+v, want it denied with %+v", token, grants[0], before.Schedule)
		}
	}
	wantRecord(t, s, 1, before)
}

func unknownFeedNeedsTokenZero(t *testing.T, s cache.Store) {
	grants, err := s.Reserve(t.Context(), []cache.Claim{claim(1, 7)})
	if err != nil {
		t.Fatalf("Reserve: %v", err)
	}
	if grants[0].OK || !sameSchedule(grants[0].Schedule, cache.Schedule{}) {
		t.Errorf("claim = %+v, want it denied with nothing", grants[0])
	}
	id, _ := feed(1)
	_, err = s.Load(t.Context(), id)
	wantError(t, "Load after a denied claim", err, cache.ErrNoRecord)
}

func grantedOnceInACall(t *testing.T, s cache.Store) {
	again := claim(1, 0)
	again.Next = start.Add(5 * time.Hour)
	// The last one guesses the token that the first one is about to get.
	grants, err := s.Reserve(t.Context(), []cache.Claim{claim(1, 0), again, claim(1, 1)})
	if err != nil {
		t.Fatalf("Reserve: %v", err)
	}
	want := cache.Schedule{Next: start.Add(time.Hour), Token: 1}
	for i, g := range grants {
		if g.OK != (i == 0) || !sameSchedule(g.Schedule, want) {
			t.Errorf("grant %d = %+v, want only the first granted, with %+v", i, g, want)
		}
	}
	if got := load(t, s, 1).Schedule; !sameSchedule(got, want) {
		t.Errorf("record has %+v, want %+v", got, want)
	}
}

func grantsInOrder(t *testing.T, s cache.Store) {
	reserve(t, s, 2, 0)
	claims := []cache.Claim{claim(4, 0), claim(2, 0), claim(1, 0), claim(2, 1), claim(3, 9), claim(0, 0)}
	want := []bool{true, false, true, false, false, true} // the second of feed 2 comes too late in its call
	grants, err := s.Reserve(t.Context(), claims)
	if err != nil {
		t.Fatalf("Reserve: %v", err)
	}
	if len(grants) != len(want) {
		t.Fatalf("%d grants for %d claims", len(grants), len(claims))
	}
	for i, g := range grants {
		if g.OK != want[i] {
			t.Errorf("grant %d = %v, want %v", i, g.OK, want[i])
		}
	}
	if n := len(scan(t, s)); n != 4 {
		t.Errorf("%d records, want 4", n)
	}
}

func timesToTheMillisecond(t *testing.T, s cache.Store) {
	whole := start.Add(123 * time.Millisecond)
	for n, c := range []struct {
		name       string
		next, want time.Time
	}{
		{"whole", whole, whole},
		{"a nanosecond more", whole.Add(1), whole.Add(time.Millisecond)},
		{"a nanosecond less", whole.Add(-1), whole},
		{"another zone", whole.In(time.FixedZone("", 5*3600)), whole},
		{"zero: at once", time.Time{}, time.Time{}},
		{"before 1970", time.Unix(-1, 1), time.UnixMilli(-999)},
		{"never", time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC), time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)},
	} {
		claimed := claim(n, 0)
		claimed.Next = c.next
		grants, err := s.Reserve(t.Context(), []cache.Claim{claimed})
		if err != nil {
			t.Fatalf("%s: Reserve: %v", c.name, err)
		}
		for what, got := range map[string]time.Time{"granted": grants[0].Schedule.Next, "reserved": load(t, s, n).Next} {
			if !got.Equal(c.want) || got.IsZero() != c.want.IsZero() {
				t.Errorf("%s: %s %v, want %v", c.name, what, got, c.want)
			}
		}
		o := outcome(n, 1, nil)
		o.Next = c.next
		commit(t, s, o)
		if got := load(t, s, n).Next; !got.Equal(c.want) || got.IsZero() != c.want.IsZero() {
			t.Errorf("%s: committed %v, want %v", c.name, got, c.want)
		}
	}
}

func reservationKeepsTheRest(t *testing.T, s cache.Store) {
	reserve(t, s, 1, 0)
	commit(t, s, outcome(1, 1, text(3, "content")))
	want := load(t, s, 1)
	want.Token, want.Next = 2, start.Add(time.Hour)
	if got := reserve(t, s, 1, 1); !sameSchedule(got, want.Schedule) {
		t.Errorf("granted %+v, want %+v", got, want.Schedule)
	}
	wantRecord(t, s, 1, want)
	wantBody(t, s, 1, text(3, "content"))
}

// oneOfManyClaims lets many callers race for the same tokens of some feeds.
func oneOfManyClaims(t *testing.T, s cache.Store) {
	const feeds, callers, tokens = 5, 16, 4
	claims := make([]cache.Claim, feeds)
	for token := range uint64(tokens) {
		for n := range claims {
			claims[n] = claim(n, token)
		}
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			granted [feeds]int
		)
		for range callers {
			wg.Go(func() {
				grants, err := s.Reserve(t.Context(), claims)
				if err != nil {
					t.Errorf("Reserve: %v", err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				for n, g := range grants {
					if g.OK {
						granted[n]++
					}
					if g.Schedule.Token != token+1 {
						t.Errorf("feed %d: answered with token %d, want %d", n, g.Schedule.Token, token+1)
					}
				}
			})
		}
		wg.Wait()
		for n, count := range granted {
			if count != 1 {
				t.Errorf("feed %d: token %d was granted %d times", n, token, count)
			}
		}
	}
}

func latestTime(t *testing.T, s cache.Store) {
	want := func(what string, want time.Time) {
		t.Helper()
		got, err := s.Latest(t.Context())
		if err != nil {
			t.Fatalf("Latest: %v", err)
		}
		if !got.Equal(want) || got.IsZero() != want.IsZero() {
			t.Errorf("after %s: latest time %v, want %v", what, got, want)
		}
	}
	at := func(n int, token uint64, now time.Time) cache.Claim {
		c := claim(n, token)
		c.Now = now
		return c
	}
	for _, c := range []struct {
		name   string
		claims []cache.Claim
		want   time.Time
	}{
		{"the first reservation", []cache.Claim{at(1, 0, start)}, start},
		{"a clock set back", []cache.Claim{at(1, 1, start.Add(-time.Hour))}, start},
		{"a denied claim", []cache.Claim{at(1, 1, start.Add(time.Hour))}, start},
		{"several claims", []cache.Claim{at(2, 0, start.Add(2*time.Minute)), at(3, 0, start.Add(time.Minute))}, start.Add(2 * time.Minute)},
	} {
		if _, err := s.Reserve(t.Context(), c.claims); err != nil {
			t.Fatalf("%s: Reserve: %v", c.name, err)
		}
		want(c.name, c.want)
	}
	o := outcome(1, 2, nil)
	o.Now = start.Add(time.Minute)
	commit(t, s, o)
	want("a commit of an earlier time", start.Add(2*time.Minute))
	o.Now = start.Add(3 * time.Minute)
	commit(t, s, o)
	want("a commit", start.Add(3*time.Minute))
	o.Token, o.Now = 1, start.Add(time.Hour)
	wantError(t, "a late commit", s.Commit(t.Context(), o), cache.ErrFenced)
	want("a fenced commit", start.Add(3*time.Minute))
	if err := s.Forget(t.Context(), []cache.ID{o.ID}); err != nil {
		t.Fatalf("Forget: %v", err)
	}
	want("Forget", start.Add(3*time.Minute))
}
