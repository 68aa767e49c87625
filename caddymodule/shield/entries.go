// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// maxEntries is how many keys, variants included, one shield has in memory.
	maxEntries = 1000
	// maxVariants is how many variants one feed has, in memory and in the store.
	maxVariants = 16
	// bypassFor is how long requests for a key go straight to the origin after a poll has
	// shown that its response cannot be shared.
	bypassFor = 10 * time.Minute
)

// entries is the memory of the keys that readers request. It lives as long as the engine.
// It is a 2Q cache: keys requested once make room first, so invented URLs do not evict keys
// that readers use. An evicted key keeps its feed in the store.
type entries struct {
	byKey *lru.TwoQueueCache[string, *entry]
	mu    sync.Mutex // held while an entry is added
}

func newEntries() any {
	byKey, err := lru.New2Q[string, *entry](maxEntries)
	if err != nil {
		panic(err) // the size is not positive
	}
	return &entries{byKey: byKey}
}

// entry is what a shield knows of one key.
type entry struct {
	key      string
	fields   http.Header // what requests for this variant send; read only
	variants []*entry    // of this feed; guarded by entries.mu

	requested   atomic.Int64 // the last request, in Unix seconds
	again       atomic.Bool  // there was more than one request
	feed        atomic.Bool  // a response was a feed
	bypassUntil atomic.Int64 // in Unix milliseconds

	// State of the poll in flight.
	looksLikeFeed atomic.Bool // the response begins like a feed
	bypassed      atomic.Bool // one reader has gone to the origin instead of waiting
}

// get returns the entry of a key, or nil.
func (s *entries) get(key string) *entry {
	e, _ := s.byKey.Peek(key)
	return e
}

// request returns the entry of a key that a reader requests, or nil. It takes the exclusive
// lock of the cache once per second and key: the order of the keys needs no more.
func (s *entries) request(key string, now time.Time) *entry {
	e := s.get(key)
	if e == nil {
		return nil
	}
	if last := e.requested.Swap(now.Unix()); last != now.Unix() || !e.again.Load() {
		e.again.Store(true)
		s.byKey.Get(key)
	}
	return e
}

// add returns the entry of a key, and makes one if there is none.
func (s *entries) add(key string, now time.Time) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.get(key); e != nil {
		return e
	}
	e := &entry{key: key}
	e.requested.Store(now.Unix())
	s.byKey.Add(key, e)
	return e
}

// addVariant returns the entry of a variant of a feed, and makes one if there is none. If the
// feed has too many variants, one that was requested once, or longest ago, makes room: evicted
// is its key.
func (s *entries) addVariant(feed *entry, key string, fields http.Header, now time.Time) (e *entry, evicted string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.get(key); e != nil {
		return e, ""
	}
	feed.variants = slices.DeleteFunc(feed.variants, func(e *entry) bool { return e.key == key })
	if len(feed.variants) >= maxVariants {
		victim := slices.MinFunc(feed.variants, (*entry).compareUse)
		feed.variants = slices.DeleteFunc(feed.variants, func(e *entry) bool { return e == victim })
		s.byKey.Remove(victim.key)
		evicted = victim.key
	}
	e = &entry{key: key, fields: fields}
	e.requested.Store(now.Unix())
	feed.variants = append(feed.variants, e)
	s.byKey.Add(key, e)
	return e, evicted
}

// compareUse orders entries by their use: those that were requested once come first, then
// those that were requested longest ago.
func (e *entry) compareUse(other *entry) int {
	if again := e.again.Load(); again != other.again.Load() {
		if again {
			return 1
		}
		return -1
	}
	return int(e.requested.Load() - other.requested.Load())
}

// bypasses reports whether requests go straight to the origin.
func (e *entry) bypasses(now time.Time) bool { return now.UnixMilli() < e.bypassUntil.Load() }

// bypass sends requests straight to the origin for a while.
func (e *entry) bypass(now time.Time) {
	e.feed.Store(false)
	e.bypassUntil.Store(now.Add(bypassFor).UnixMilli())
}
