// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/policy"
)

// node is one of several gateways on a store. It is closed at the end of the test, at the
// latest.
func node(t *testing.T, db store.Store, origin cache.Origin, settings cache.Settings) *gateway {
	t.Helper()
	c, err := cache.New(cache.Options{Store: db, Origin: origin, Memory: 1 << 20, Suspended: awake})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	c.Apply(settings)
	return &gateway{t: t, Cache: c}
}

// nodes are two gateways on a store, of which one has hooks, and the feed that they poll.
type nodes struct {
	one, other *gateway
	shared     Store
	db         *hooked // as the other node sees it
	origin     *script
	entries    atomic.Int64
	takes      atomic.Int64 // nanoseconds, for a poll
}

// newNodes opens them, with an origin whose feed stays fresh for so long.
func newNodes(t *testing.T, fresh time.Duration) *nodes {
	t.Helper()
	time.Sleep(time.Until(epoch))
	n := new(nodes)
	n.entries.Store(1)
	n.origin = &script{answer: func(policy.Ask) policy.Answer {
		time.Sleep(time.Duration(n.takes.Load()))
		return ok(rss(int(n.entries.Load()), ""), "Cache-Control", fmt.Sprintf("max-age=%d", int(fresh.Seconds())))
	}}
	n.shared = sharedStore(t)
	n.db = &hooked{Store: n.shared}
	n.one, n.other = node(t, n.shared, n.origin, cache.Settings{}), node(t, n.db, n.origin, cache.Settings{})
	return n
}

// Whatever a node is doing while another one commits a version, it serves that one
// shortly after.
func TestVersionOfAnotherNodeIsNotMissed(t *testing.T) {
	for _, call := range []string{"Claim", "Lookup"} {
		bubble(t, call, func(t *testing.T) {
			n := newNodes(t, 24*time.Hour)
			n.takes.Store(int64(time.Second))
			slow, quick := n.other, n.one
			n.db.delay(10*time.Second, call)
			if call == "Claim" {
				slow.get(feedURL) // it is in memory there
			}
			first := quick.get(feedURL)
			wantBody(t, first, 200, "Entry 1")
			n.entries.Store(2)
			time.Sleep(27 * time.Hour)
			var both sync.WaitGroup
			both.Go(func() { quick.get(feedURL) })
			time.Sleep(100 * time.Millisecond)
			both.Go(func() { slow.get(feedURL, "If-None-Match", first.Header().Get("Etag")) })
			both.Wait()
			time.Sleep(30 * time.Second)
			wantBody(t, slow.get(feedURL, "If-None-Match", first.Header().Get("Etag")), 200, "Entry 2")
			if n := n.origin.polls(); n != 2 {
				t.Errorf("%d polls", n)
			}
		})
	}
}

// A reader of a feed without a version waits for the poll of another node as for one of the node
// that it asks.
func TestFirstPollOfAnotherNodeIsAwaited(t *testing.T) {
	for name, answer := range map[string]func() policy.Answer{
		"a version": func() policy.Answer { return ok(rss(1, "")) },
		"a failure": func() policy.Answer { return failed(404, policy.FailureStatus) },
	} {
		bubble(t, name, func(t *testing.T) {
			time.Sleep(time.Until(epoch))
			origin := &script{answer: func(policy.Ask) policy.Answer {
				time.Sleep(10 * time.Second)
				return answer()
			}}
			db := sharedStore(t)
			a, b := node(t, db, origin, cache.Settings{}), node(t, db, origin, cache.Settings{})
			began := time.Now()
			var readers sync.WaitGroup
			answers := make([]*httptest.ResponseRecorder, 4)
			for i, g := range []*gateway{a, b, b, b} {
				readers.Go(func() {
					time.Sleep(time.Duration(i/2) * 3 * time.Second) // the last two when that poll is on its way
					answers[i] = g.get(feedURL)
					if took := time.Since(began).Round(time.Second); took != 10*time.Second {
						t.Errorf("reader %d was answered after %v", i, took)
					}
				})
			}
			readers.Wait()
			for i, w := range answers {
				if w.Code != answers[0].Code || w.Body.String() != answers[0].Body.String() {
					t.Errorf("reader %d got %d %s, the first one %d %s", i, w.Code, w.Body, answers[0].Code, answers[0].Body)
				}
			}
			if name == "a version" {
				wantBody(t, answers[3], 200, "Entry 1")
			}
			if n := origin.polls(); n != 1 {
				t.Errorf("%d polls", n)
			}
		})
	}
}

// A node that ends in the middle of a first poll brings no outcome: the readers of
// another one wait for it as long as it could come, and no longer.
func TestFirstPollOfLostNodeIsNotAwaitedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		origin := &script{answer: func(policy.Ask) policy.Answer { return ok(rss(1, "")) }}
		db := sharedStore(t)
		id := sha256.Sum256([]byte(feedURL))
		claim := store.Claim{ID: store.ID(id[:16]), URL: feedURL, Hold: time.Hour}
		if leases, err := db.Claim(t.Context(), []store.Claim{claim}); err != nil || leases[0].Denied != "" {
			t.Fatal(leases, err)
		}
		b := node(t, db, origin, cache.Settings{})
		for i, patience := range []time.Duration{40 * time.Second, 0} { // the timeout of polls, and some
			began := time.Now()
			if w := b.get(feedURL); w.Code != 503 {
				t.Errorf("reader %d: %d %s", i, w.Code, w.Body)
			}
			if took := time.Since(began).Round(time.Second); took != patience {
				t.Errorf("reader %d waited for %v", i, took)
			}
		}
		time.Sleep(time.Hour)
		wantBody(t, b.get(feedURL), 200, "Entry 1")
	})
}

// A node learns what has changed before it could watch the store. A feed that is forgotten and comes
// back begins to count its versions again, and a node that has seen only the end of that serves nothing
// of the one before.
func TestForgottenAndBackUnseen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(epoch))
		entries := 1
		origin := &script{answer: func(policy.Ask) policy.Answer { return ok(rss(entries, ""), "Cache-Control", "max-age=86400") }}
		shared := sharedStore(t)
		db := &hooked{Store: shared}
		db.refuse(errors.New("not yet"), "Watch")
		time.AfterFunc(3*time.Hour, func() { db.refuse(nil) })
		deaf, one := node(t, db, origin, cache.Settings{}), node(t, shared, origin, cache.Settings{Feeds: []string{feedURL}})
		first := deaf.get(feedURL)
		wantBody(t, first, 200, "Entry 1")
		time.Sleep(2 * time.Hour)
		if err := one.Forget(t.Context(), feedURL); err != nil {
			t.Fatal(err)
		}
		entries = 2
		must(one.Refresh(t.Context(), feedURL))
		wantBody(t, one.get(feedURL), 200, "Entry 2")
		time.Sleep(2 * time.Hour)
		want, got := one.get(feedURL), deaf.get(feedURL)
		wantBody(t, got, 200, "Entry 2")
		for _, name := range []string{"Etag", "Last-Modified"} {
			if got, want := got.Header().Get(name), want.Header().Get(name); got != want {
				t.Errorf("%s is %s, of another node %s", name, got, want)
			}
		}
		if w := deaf.get(feedURL, "If-Modified-Since", first.Header().Get("Last-Modified")); w.Code != 200 {
			t.Errorf("a reader of the one before gets %d", w.Code)
		}
	})
}

// A node learns of changes that it could not read as soon as the store can be read again, and not with the next change or poll.
func TestChangesThatCannotBeReadAreReadLater(t *testing.T) {
	const deafness = 3 * time.Hour
	for name, deaf := range map[string]time.Duration{"a change": 0, "all changes of hours": deafness} {
		bubble(t, name, func(t *testing.T) {
			time.Sleep(time.Until(epoch))
			entries := 1
			origin := &script{answer: func(policy.Ask) policy.Answer { return ok(rss(entries, ""), "Cache-Control", "max-age=86400") }}
			shared := sharedStore(t)
			db := &hooked{Store: shared}
			if deaf > 0 {
				db.refuse(errors.New("not yet"), "Watch")
				time.AfterFunc(deaf, func() { db.refuse(nil) })
			}
			one, other := node(t, shared, origin, cache.Settings{}), node(t, db, origin, cache.Settings{})
			urls := []string{feedURL, "https://two.test/feed", "https://three.test/feed", "https://four.test/feed"}
			for _, url := range urls {
				wantBody(t, one.get(url), 200, "Entry 1")
				wantBody(t, other.get(url), 200, "Entry 1")
			}
			time.Sleep(2 * time.Hour)
			entries = 2
			if deaf == 0 {
				db.setAway(true)
			}
			for _, url := range urls {
				if _, err := one.Refresh(t.Context(), url); err != nil {
					t.Fatal(err)
				}
			}
			if deaf > 0 {
				time.Sleep(59 * time.Minute)
				db.setAway(true) // before it hears that much has changed
			}
			time.Sleep(10 * time.Minute)
			polls := origin.polls()
			wantBody(t, other.get(feedURL), 200, "Entry 1")
			db.setAway(false)
			time.Sleep(30 * time.Second)
			for _, url := range urls {
				wantBody(t, other.get(url), 200, "Entry 2")
			}
			if n := origin.polls() - polls; n > 0 {
				t.Errorf("%d polls", n)
			}
		})
	}
}

// Another node has committed a version that cannot be read. Readers of the one in memory keep it, before,
// during and after the polls of their own node.
func TestVersionThatCannotBeReadReplacesNone(t *testing.T) {
	for name, err := range some(map[string]error{"for hours": errors.New("it cannot be read now"), "ever": store.ErrNoBody}) {
		bubble(t, name, func(t *testing.T) {
			n := newNodes(t, 3*time.Hour)
			wantBody(t, n.one.get(feedURL), 200, "Entry 1")
			wantBody(t, n.other.get(feedURL), 200, "Entry 1")
			n.db.refuse(err, "Body")
			n.entries.Store(2)
			time.Sleep(2 * time.Hour)
			if _, err := n.one.Refresh(t.Context(), feedURL); err != nil {
				t.Fatal(err)
			}
			wantBody(t, n.one.get(feedURL), 200, "Entry 2")
			time.Sleep(30 * time.Second)
			wantBody(t, n.other.get(feedURL), 200, "Entry 1")
			n.takes.Store(int64(20 * time.Second))
			time.Sleep(5 * time.Hour)
			wantBody(t, n.other.get(feedURL), 200, "Entry 1") // its own poll is under way
			polls := n.origin.polls()
			for range 4 {
				time.Sleep(20 * time.Minute)
				wantBody(t, n.other.get(feedURL), 200, "Entry")
			}
			if errors.Is(err, store.ErrNoBody) && !n.origin.asks[polls-1].Validators.Empty() {
				t.Errorf("a poll asked whether a version that is lost has changed: %+v", n.origin.asks[polls-1].Validators)
			}
			n.db.refuse(nil, "Body")
			time.Sleep(10 * time.Second)
			wantBody(t, n.other.get(feedURL), 200, "Entry 2")
		})
	}
}
