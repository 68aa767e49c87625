// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"net/http"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/httpcache"
	"github.com/feedpollard/pollard/readers"
)

// observe is a request as the ledger of readers and the defences see it, before
// it is answered.
func (e *engine) observe(r *http.Request, key string, feed *cache.Feed) readers.Request {
	note := readers.FromHTTP(r, key, clientOf(r), time.Now())
	switch feed.Standing(r.Header) {
	case cache.Current:
		note.Validators = readers.ValidatorsCurrent
	case cache.Earlier:
		note.Validators = readers.ValidatorsEarlier
	case cache.Unknown:
		note.Validators = readers.ValidatorsUnknown
	}
	note.SkipHours = readers.HoursOf(feed.Hints().SkipHours)
	return note
}

// about is what is known of a feed, for judging its readers.
func (e *engine) about(key string) readers.About {
	c := e.cache.Load()
	if c == nil {
		return readers.About{}
	}
	return readers.About{Changes: c.Changes(key)}
}

// sharedCache is the cache of the shields in rfc9111 mode, which they share. It
// is made when the first of them needs it, and lives as long as the engine.
func (e *engine) sharedCache() (*httpcache.Cache, error) {
	e.sharedOnce.Do(func() {
		e.shared, e.sharedErr = httpcache.New(httpcache.Options{Memory: e.budget.Load()})
	})
	return e.shared, e.sharedErr
}

// variants bounds how many variants of one feed are kept: a site that tells
// readers apart by their User-Agent must not fill the store.
type variants struct {
	mu    sync.Mutex
	known map[string]map[string]bool
}

const (
	maxVariants    = 16
	maxVariedFeeds = 1024
)

// admit reports whether a variant of a feed may be kept.
func (v *variants) admit(feed, variant string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.known[feed]
	switch {
	case of[variant]:
		return true
	case len(of) >= maxVariants, of == nil && len(v.known) >= maxVariedFeeds:
		return false
	}
	if v.known == nil {
		v.known = make(map[string]map[string]bool)
	}
	if of == nil {
		of = make(map[string]bool)
		v.known[feed] = of
	}
	of[variant] = true
	return true
}
