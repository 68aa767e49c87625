// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dgraph-io/ristretto/v2"
)

// maxVariants bounds the entries of one key; the one longest not updated goes first.
const maxVariants = 32

// resource is what is stored under one key. It does not change once it is stored.
type resource struct {
	key     string
	entries []*entry  // the newest first
	alone   time.Time // until then requests are not collapsed: the last answer could not be shared
}

// find is the newest entry that matches a request (RFC 9111 section 4.1), or nil.
func (v *resource) find(r *http.Request) *entry {
	if v == nil {
		return nil
	}
	for _, e := range v.entries {
		if e.selection.matches(r) {
			return e
		}
	}
	return nil
}

// isAlone reports whether a request of this key should go to the origin by itself.
func (v *resource) isAlone(now time.Time) bool { return v != nil && now.Before(v.alone) }

func (v *resource) cost() int64 {
	cost := int64(256 + len(v.key))
	for _, e := range v.entries {
		cost += e.cost()
	}
	return cost
}

// store holds resources by key. It is only memory: it may forget any of them at
// any time, or refuse a newcomer.
type store struct {
	cache  *ristretto.Cache[string, *resource]
	closed atomic.Bool

	mu      sync.Mutex // orders changes and invalidations
	watches map[string]map[*watch]struct{}
}

// watch is kept on a key while something is fetched for it: what was asked for
// before an invalidation must not be stored after it.
type watch struct {
	key  string
	void bool // the key was invalidated; guarded by store.mu
}

func newStore(budget int64) (*store, error) {
	cache, err := ristretto.NewCache(&ristretto.Config[string, *resource]{
		MaxCost:     budget,
		NumCounters: max(1000, budget/10_000*10), // ten for each response, of 10 kB on average
		BufferItems: 64,
	})
	return &store{cache: cache, watches: make(map[string]map[*watch]struct{})}, err
}

func (s *store) close() {
	s.closed.Store(true)
	s.cache.Close()
}

// get returns what is stored under a key, or nil.
func (s *store) get(key string) *resource {
	if s.closed.Load() {
		return nil
	}
	v, ok := s.cache.Get(key)
	if !ok || v.key != key {
		return nil
	}
	return v
}

// watch begins before a fetch, and is needed to store its result.
func (s *store) watch(key string) *watch {
	w := &watch{key: key}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[key] == nil {
		s.watches[key] = make(map[*watch]struct{})
	}
	s.watches[key][w] = struct{}{}
	return w
}

// unwatch ends a watch.
func (s *store) unwatch(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches[w.key], w)
	if len(s.watches[w.key]) == 0 {
		delete(s.watches, w.key)
	}
}

// put stores the answer to a request, in place of the entries that match it. Alone
// is zero for an answer that others can share.
func (s *store) put(w *watch, r *http.Request, e *entry, alone time.Time) {
	s.change(w, func(old *resource) *resource {
		next := &resource{key: w.key, entries: []*entry{e}, alone: alone}
		for _, other := range old.entries {
			if len(next.entries) < maxVariants && !other.selection.matches(r) {
				next.entries = append(next.entries, other)
			}
		}
		return next
	})
}

// drop forgets the entries that match a request.
func (s *store) drop(w *watch, r *http.Request) {
	if s.get(w.key).find(r) == nil {
		return
	}
	s.change(w, func(old *resource) *resource {
		next := &resource{key: w.key, alone: old.alone}
		for _, other := range old.entries {
			if !other.selection.matches(r) {
				next.entries = append(next.entries, other)
			}
		}
		return next
	})
}

// leaveAlone notes that the answers of a key can not be shared.
func (s *store) leaveAlone(w *watch, until time.Time) {
	s.change(w, func(old *resource) *resource {
		return &resource{key: w.key, entries: old.entries, alone: until}
	})
}

// change replaces what is stored under a key, unless the key was invalidated since
// the watch began, and waits until it can be seen: a reader who has an answer to the end
// may ask again at once. Of two changes at the same time one may be lost.
func (s *store) change(w *watch, next func(old *resource) *resource) {
	if s.closed.Load() {
		return
	}
	old := s.get(w.key)
	stored := old != nil
	if !stored {
		old = &resource{key: w.key}
	}
	v := next(old)
	if stored && v.cost() > old.cost() {
		// Ristretto makes room for newcomers only, not for what grows.
		s.cache.Del(w.key)
	}
	if s.set(w, v) {
		s.cache.Wait()
	}
}

// set stores a resource unless its key was invalidated in the meantime.
func (s *store) set(w *watch, v *resource) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !w.void && s.cache.Set(w.key, v, v.cost())
}

// invalidate forgets a key (RFC 9111 section 4.4).
func (s *store) invalidate(key string) {
	if s.closed.Load() {
		return
	}
	s.void(key)
	s.cache.Del(key)
}

// void makes sure that nothing asked for until now is stored under a key.
func (s *store) void(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.watches[key] {
		w.void = true
	}
}
