// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// What a feed takes of the memory's budget is given back once when it is forgotten: a
// budget that seemed to grow would be kept by nobody.
func TestForgottenFeedsGiveTheirMemoryBack(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return failed(404, policy.FailureNotFound) }).open()
		defer g.close()
		before := g.Summary(t.Context()).Memory
		for i := range 20 {
			url := fmt.Sprintf("https://origin.test/%d", i)
			g.get(url)
			if err := g.Forget(t.Context(), url); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if after := g.Summary(t.Context()).Memory; after != before {
			t.Errorf("%d bytes in memory, want the %d from before", after, before)
		}
	})
}

// The URLs that a reader invents of a host which has asked for a pause are never
// claimed, so the store does not know them. They leave memory all the same.
func TestFeedsThatWereNeverClaimedLeaveMemory(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, nil)
		g.origin.ready = epoch.Add(1000 * time.Hour)
		g.open()
		defer g.close()
		for i := range 3000 {
			g.get(fmt.Sprintf("https://origin.test/%d", i))
		}
		time.Sleep(2 * time.Minute)
		if used := g.Summary(t.Context()).Memory; used > 600_000 {
			t.Errorf("%d bytes in memory of a budget of half a MiB", used)
		}
	})
}

// Invented URLs that are slow to answer take up half of the polls in flight at most.
func TestInventedFeedsLeaveRoomForKnownOnes(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(ask policy.Ask) policy.Answer {
			if ask.URL != feedURL {
				time.Sleep(time.Minute)
				return failed(0, policy.FailureTimeout)
			}
			return ok(rss(2, ""), "ETag", `"v"`)
		})
		g.settings.Polls = 8
		g.open()
		defer g.close()
		g.get(feedURL)
		time.Sleep(25 * time.Hour)
		var crowd sync.WaitGroup
		for i := range 100 {
			crowd.Go(func() { g.get(fmt.Sprintf("https://stranger.test/%d", i)) })
		}
		synctest.Wait()
		wantBody(t, g.get(feedURL), 200, "Entry 2")
		if n := len(g.asked(feedURL)); n != 2 {
			t.Errorf("the known feed was polled %d times, want it polled beside the others", n)
		}
		crowd.Wait()
		time.Sleep(time.Hour) // until the last poll has been answered: nothing ends it here
	})
}
