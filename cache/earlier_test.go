// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// twoNodes are two gateways on a store, which one of them may lose.
type twoNodes struct {
	one, other *gateway
	store      *distant // as the other node sees it
	origin     *script
}

// onTwoNodes runs a test in a bubble with an origin that gives what answer says.
func onTwoNodes(t *testing.T, settings cache.Settings, answer func() policy.Answer, test func(t *testing.T, n *twoNodes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		shared := sharedStore(t)
		n := &twoNodes{store: &distant{Store: shared}, origin: &script{answer: func(policy.Ask) policy.Answer { return answer() }}}
		n.one, n.other = node(t, shared, n.origin, settings), node(t, n.store, n.origin, settings)
		test(t, n)
	})
}

// later has a node poll some time later, without a reader.
func later(t *testing.T, by *gateway) {
	t.Helper()
	time.Sleep(2 * time.Hour)
	if _, err := by.Refresh(t.Context(), feedURL); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Second)
}

// A version that a node has polled itself is served while the store is away, although it has had
// no readers here, and another node has a newer one.
func TestPolledVersionWhileTheStoreIsAway(t *testing.T) {
	for name, asked := range map[string]bool{"asked for before": true, "never asked for": false} {
		t.Run(name, func(t *testing.T) {
			entries := 1
			onTwoNodes(t, cache.Settings{}, func() policy.Answer { return ok(rss(entries, "")) }, func(t *testing.T, n *twoNodes) {
				n.one.get(feedURL)
				if asked {
					wantBody(t, n.other.get(feedURL), http.StatusOK, "Entry 1")
				}
				entries = 2
				later(t, n.other)
				entries = 3
				n.store.setMute(true)
				later(t, n.one)
				wantBody(t, n.other.get(feedURL), http.StatusOK, "Entry 2")
			})
		})
	}
}

// A publisher who takes a change back gives what is still in memory.
func TestVersionThatComesBackIsInMemory(t *testing.T) {
	entries := 1
	onTwoNodes(t, cache.Settings{}, func() policy.Answer { return ok(rss(entries, "")) }, func(t *testing.T, n *twoNodes) {
		n.one.get(feedURL)
		wantBody(t, n.other.get(feedURL), http.StatusOK, "Entry 1")
		n.store.setMute(true)
		for _, entries = range []int{2, 1} {
			later(t, n.one)
		}
		wantBody(t, n.other.get(feedURL), http.StatusOK, "Entry 1")
	})
}

// A version that its publisher has withdrawn is not served again.
func TestWithdrawnVersionWhileTheStoreIsAway(t *testing.T) {
	entries, private := 1, false
	site := func() policy.Answer {
		if private {
			return policy.Answer{Status: 200, Failure: policy.FailureNotShared, Err: fmt.Errorf("private")}
		}
		return ok(rss(entries, ""), "Cache-Control", "max-age=3600")
	}
	onTwoNodes(t, cache.Settings{}, site, func(t *testing.T, n *twoNodes) {
		wantBody(t, n.one.get(feedURL), http.StatusOK, "Entry 1")
		wantBody(t, n.other.get(feedURL), http.StatusOK, "Entry 1")
		private = true
		later(t, n.one)
		if w := n.other.get(feedURL); w.Code == http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
		private, entries = false, 2
		n.store.setMute(true)
		later(t, n.one)
		if w := n.other.get(feedURL); w.Code == http.StatusOK {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}
