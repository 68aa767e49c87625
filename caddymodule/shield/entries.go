// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// maxEntries is how many keys one shield has in memory.
	maxEntries = 1000
	// bypassFor is how long requests for a key go straight to the origin after a poll has
	// shown that its response cannot be shared.
	bypassFor = 10 * time.Minute
)

// memories are the entries of this process by the identity of their shields, which outlive reloads.
var memories = caddy.NewUsagePool()

// entries is the memory of the keys that readers request.
// It is a 2Q cache: keys requested once make room first, so invented URLs do not evict keys
// that readers use. An evicted key keeps its feed in the store.
type entries struct {
	byKey *lru.TwoQueueCache[string, *entry]
	mu    sync.Mutex // held while an entry is added

	host atomic.Pointer[hostPort] // of the last request
}

func newEntries() (caddy.Destructor, error) {
	byKey, err := lru.New2Q[string, *entry](maxEntries)
	return &entries{byKey: byKey}, err
}

func (*entries) Destruct() error { return nil }

// entry is what a shield knows of one key.
type entry struct {
	requested   atomic.Int64           // the last request, in Unix seconds
	feed        atomic.Bool            // a response was a feed
	loops       atomic.Bool            // the last poll got status 508
	bypassUntil atomic.Int64           // in Unix milliseconds
	unshared    atomic.Pointer[string] // why the last poll brought a feed that may not be shared; nil: it did not

	mu     sync.Mutex
	passed map[string]int64 // requests that went to the origin, by the reason: a header field, body or method
}

// hostPort is a host in the form of [feedurl.HostPort].
type hostPort struct{ scheme, sent, normal string }

// hostPort returns a host in that form. Nearly all requests for a site have the same one.
func (s *entries) hostPort(scheme, sent string) (string, error) {
	if last := s.host.Load(); last != nil && last.scheme == scheme && last.sent == sent {
		return last.normal, nil
	}
	normal, err := feedurl.HostPort(scheme, sent)
	if err == nil {
		s.host.Store(&hostPort{scheme, sent, normal})
	}
	return normal, err
}

// get returns the entry of a key, or nil.
func (s *entries) get(key string) *entry {
	e, _ := s.byKey.Peek(key)
	return e
}

// isFeed reports whether a response to a request with a key was a feed.
func (s *entries) isFeed(key string) bool {
	e := s.get(key)
	return e != nil && e.feed.Load()
}

// request returns the entry of a key that a reader requests, or nil. It takes the exclusive
// lock of the cache once per second and key: the order of the keys needs no more.
func (s *entries) request(key string, now time.Time) *entry {
	e := s.get(key)
	if e == nil {
		return nil
	}
	if last := e.requested.Swap(now.Unix()); last != now.Unix() {
		s.byKey.Get(key)
	}
	return e
}

// add returns the entry of a key, and makes one if there is none.
func (s *entries) add(key string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.get(key); e != nil {
		return e
	}
	e := new(entry)
	s.byKey.Add(key, e)
	return e
}

// bypasses reports whether requests go straight to the origin.
func (e *entry) bypasses(now time.Time) bool { return now.UnixMilli() < e.bypassUntil.Load() }

// bypass sends requests straight to the origin for a while.
func (e *entry) bypass(now time.Time) {
	e.feed.Store(false)
	e.bypassUntil.Store(now.Add(bypassFor).UnixMilli())
}

// maxReasons bounds the reasons of a key: an origin chooses the fields.
const maxReasons = 16

// pass counts a request that went to the origin.
func (e *entry) pass(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.passed == nil {
		e.passed = make(map[string]int64)
	}
	if _, known := e.passed[reason]; known || len(e.passed) < maxReasons {
		e.passed[reason]++
	}
}

// passed sums up the requests for some keys that went to the origin, by the reason.
func (s *entries) passed(some func(key string) bool) map[string]int64 {
	sum := make(map[string]int64)
	for _, key := range s.byKey.Keys() {
		e := s.get(key)
		if e == nil || !some(key) {
			continue
		}
		e.mu.Lock()
		for reason, n := range e.passed {
			sum[reason] += n
		}
		e.mu.Unlock()
	}
	return sum
}
