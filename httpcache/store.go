// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"sync"

	"github.com/dgraph-io/ristretto/v2"
)

// maxVariants bounds the entries of one key; the one longest not updated goes first.
const maxVariants = 32

// resource is what is known under one key. It does not change once it is stored.
type resource struct {
	key, url string
	entries  []*entry // the newest first
	alone    bool     // the last entry is not for others who asked at the same time: they need not wait
	marks    [2]*mark // of requests without and with Authorization
}

// mark says that a shared fetch brought nothing to store: readers ask by themselves
// until one of them is answered with something else (see learn).
type mark struct {
	tooLarge       bool // it could be stored, but for its size
	etag, modified string
}

// markOf is the place of a request's mark: what a login gets says nothing of what
// others get.
func markOf(r *http.Request) int {
	if r.Header["Authorization"] != nil {
		return 1
	}
	return 0
}

// markFor is the mark that a request meets, or nil.
func (v *resource) markFor(r *http.Request) *mark {
	if v == nil {
		return nil
	}
	return v.marks[markOf(r)]
}

func (v *resource) variants() []*entry {
	if v == nil {
		return nil
	}
	return v.entries
}

// find is the newest complete entry that matches a request (RFC 9111 section 4.1),
// or nil.
func (v *resource) find(r *http.Request) *entry {
	for _, e := range v.variants() {
		if !e.isPart() && e.selection.matches(r) {
			return e
		}
	}
	return nil
}

// findPart is the newest part that matches a request, or nil.
func (v *resource) findPart(r *http.Request) *entry {
	for _, e := range v.variants() {
		if e.isPart() && e.selection.matches(r) {
			return e
		}
	}
	return nil
}

func (v *resource) cost() int64 {
	cost := int64(256 + len(v.key) + len(v.url))
	for _, e := range v.entries {
		cost += e.cost()
	}
	return cost
}

// store holds resources by key. It is only memory: it may forget any of them at
// any time, or refuse a newcomer.
type store struct {
	cache *ristretto.Cache[string, *resource]

	// Ristretto must not be used once it is being closed, and readers go on asking.
	// Only closing takes the lock for itself: nobody ever waits before that.
	closing sync.RWMutex
	closed  bool // guarded by closing

	mu      sync.Mutex // orders changes and invalidations
	watches map[string]map[*watch]struct{}
}

// watch is kept on a key while something is fetched for it: what was asked for
// before an invalidation must not be stored after it.
type watch struct {
	key, url string
	void     bool // the key was invalidated; guarded by store.mu
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
	s.closing.Lock()
	defer s.closing.Unlock()
	s.closed = true
	s.cache.Close()
}

// get returns what is stored under a key, or nil.
func (s *store) get(key string) *resource {
	s.closing.RLock()
	defer s.closing.RUnlock()
	return s.lookup(key)
}

// lookup is get for whoever has the lock.
func (s *store) lookup(key string) *resource {
	if s.closed {
		return nil
	}
	v, ok := s.cache.Get(key)
	if !ok || v.key != key {
		return nil
	}
	return v
}

// watch begins before a fetch, and is needed to store its result.
func (s *store) watch(t Target) *watch {
	w := &watch{key: t.Key}
	if t.URL != nil {
		w.url = t.URL.String()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watches[w.key] == nil {
		s.watches[w.key] = make(map[*watch]struct{})
	}
	s.watches[w.key][w] = struct{}{}
	return w
}

func (s *store) unwatch(w *watch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watches[w.key], w)
	if len(s.watches[w.key]) == 0 {
		delete(s.watches, w.key)
	}
}

// isVoid reports whether the key was invalidated since the watch began.
func (s *store) isVoid(w *watch) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return w.void
}

// put stores the answer to a request, in place of the entries that match it; a
// part in place of parts only.
func (s *store) put(w *watch, r *http.Request, e *entry, alone bool) {
	s.change(w, func(next *resource) {
		others := next.entries
		next.alone, next.entries, next.marks[markOf(r)] = alone, []*entry{e}, nil
		for _, other := range others {
			replaced := other.selection.matches(r) && (other.isPart() || !e.isPart())
			if len(next.entries) < maxVariants && !replaced {
				next.entries = append(next.entries, other)
			}
		}
	})
}

// forgo notes that the answer to a request was not stored. One that came without
// Authorization takes the place of the entries that match it.
func (s *store) forgo(w *watch, r *http.Request, m *mark) {
	anonymous := markOf(r) == 0
	if stored := s.get(w.key); m == nil && (!anonymous || stored.find(r) == nil && stored.findPart(r) == nil) {
		return
	}
	s.change(w, func(next *resource) {
		next.marks[markOf(r)] = m
		others := next.entries
		next.entries = nil
		for _, other := range others {
			if !anonymous || !other.selection.matches(r) {
				next.entries = append(next.entries, other)
			}
		}
	})
}

// unmark lets the next request of a kind try a shared fetch.
func (s *store) unmark(t Target, r *http.Request) {
	w := s.watch(t)
	defer s.unwatch(w)
	s.change(w, func(next *resource) { next.marks[markOf(r)] = nil })
}

// change replaces what is stored under a key, unless the key was invalidated since
// the watch began, and waits until it can be seen: a reader who has an answer to the end
// may ask again at once. Of two changes at the same time one may be lost.
func (s *store) change(w *watch, change func(next *resource)) {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return
	}
	next := &resource{key: w.key, url: w.url}
	old := s.lookup(w.key)
	if old != nil {
		*next = *old
	}
	change(next)
	if old != nil && next.cost() > old.cost() {
		// Ristretto makes room for newcomers only, not for what grows.
		s.cache.Del(w.key)
	}
	if s.set(w, next) {
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
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return
	}
	s.void(func(of, _ string) bool { return of == key })
	s.cache.Del(key)
}

// purge forgets the keys that match, and returns how many there were.
func (s *store) purge(matches func(key, url string) bool) int {
	s.closing.RLock()
	defer s.closing.RUnlock()
	if s.closed {
		return 0
	}
	s.void(matches)
	s.cache.Wait() // for what is on its way in
	var keys []string
	s.cache.IterValues(func(v *resource) (stop bool) {
		if matches(v.key, v.url) {
			keys = append(keys, v.key)
		}
		return false
	})
	for _, key := range keys {
		s.cache.Del(key)
	}
	return len(keys)
}

// void makes sure that nothing asked for until now is stored under the keys that match.
func (s *store) void(matches func(key, url string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, all := range s.watches {
		for w := range all {
			if matches(key, w.url) {
				w.void = true
			}
		}
	}
}
