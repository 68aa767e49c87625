// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxKnown is how many feeds, variants included, one shield knows.
	maxKnown = 1000
	// maxVariants is how many variants of one feed there are.
	maxVariants = 16
	// notFeedFor is how long something is not asked for by polls that has turned out
	// to be no feed for everybody.
	notFeedFor = 10 * time.Minute
)

// known is what a shield knows of the keys that are asked for. It lives as long as
// the engine does. Reading takes no lock.
type known struct {
	entries sync.Map // by the key's text: *entry

	mu    sync.Mutex // held while entries come and go
	n     int        // how many there are
	limit int        // how many there may be
}

func newKnown() any { return &known{limit: maxKnown} }

// entry is what is known of one key.
type entry struct {
	key    string
	plain  string      // the key without the variant; empty: it is the key
	fields http.Header // of requests for the variant; not changed any more

	asked  atomic.Int64 // when somebody asked last, in Unix milliseconds
	again  atomic.Bool  // somebody has asked more than once
	feed   atomic.Bool  // it has been seen to be a feed
	passes atomic.Int64 // until when it is taken for no feed, in Unix milliseconds
	// promising says that the poll under way has brought what begins like a feed.
	promising atomic.Bool
	// ahead says that a reader does not wait for that poll any more.
	ahead atomic.Bool
}

// get returns what is known of a key; nil: nothing.
func (t *known) get(key string) *entry {
	if e, ok := t.entries.Load(key); ok {
		return e.(*entry)
	}
	return nil
}

// touch notes that somebody asks.
func (e *entry) touch(now time.Time) {
	at := now.UnixMilli()
	if e.asked.Load()/1000 != at/1000 { // a write each second, not each request
		e.asked.Store(at)
	}
	if !e.again.Load() {
		e.again.Store(true)
	}
}

// notFeed reports whether a key is taken for no feed at present.
func (e *entry) notFeed(now time.Time) bool { return now.UnixMilli() < e.passes.Load() }

// pass has a key taken for no feed for a while.
func (e *entry) pass(now time.Time) {
	e.feed.Store(false)
	e.passes.Store(now.Add(notFeedFor).UnixMilli())
}

// add enters a key. Where there is no room, that makes room which was asked for the
// longest ago: of what was asked for only once if there is any, so that whoever
// invents keys takes room from other invented ones. evicted is what had to go.
func (t *known) add(key, plain string, fields http.Header, now time.Time) (e *entry, evicted []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.get(key); e != nil {
		return e, nil
	}
	if plain != "" {
		siblings := func(e *entry) bool { return e.plain == plain }
		if t.count(siblings) >= maxVariants {
			evicted = append(evicted, t.evict(siblings))
		}
	}
	if t.n >= t.limit {
		evicted = append(evicted, t.evict(func(*entry) bool { return true }))
	}
	e = &entry{key: key, plain: plain, fields: fields}
	e.asked.Store(now.UnixMilli())
	t.entries.Store(key, e)
	t.n++
	return e, evicted
}

func (t *known) count(which func(*entry) bool) (n int) {
	t.entries.Range(func(_, v any) bool {
		if which(v.(*entry)) {
			n++
		}
		return true
	})
	return n
}

func (t *known) evict(which func(*entry) bool) (key string) {
	var victim *entry
	t.entries.Range(func(_, v any) bool {
		e := v.(*entry)
		if which(e) && (victim == nil || e.before(victim)) {
			victim = e
		}
		return true
	})
	t.entries.Delete(victim.key)
	t.n--
	return victim.key
}

// before reports whether an entry makes room before another.
func (e *entry) before(other *entry) bool {
	if again := e.again.Load(); again != other.again.Load() {
		return !again
	}
	return e.asked.Load() < other.asked.Load()
}
