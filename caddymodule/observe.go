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
	known map[string]map[string]time.Time // of a feed's variants: when they were asked for last
}

const (
	maxVariants    = 16
	maxVariedFeeds = 1024
	// variantRest is after how long without a reader a variant, or all those of a feed,
	// make room for others.
	variantRest = time.Hour
)

// admit reports whether a variant of a feed may be kept.
func (v *variants) admit(feed, variant string, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.known[feed]
	if _, known := of[variant]; !known {
		if len(of) >= maxVariants {
			rested(of, now)
		}
		if of == nil && len(v.known) >= maxVariedFeeds {
			for name, others := range v.known {
				if rested(others, now); len(others) == 0 {
					delete(v.known, name)
				}
			}
		}
		if len(of) >= maxVariants || of == nil && len(v.known) >= maxVariedFeeds {
			return false
		}
	}
	if v.known == nil {
		v.known = make(map[string]map[string]time.Time)
	}
	if of == nil {
		of = make(map[string]time.Time)
		v.known[feed] = of
	}
	of[variant] = now
	return true
}

// rested drops the variants that nobody has asked for.
func rested(variants map[string]time.Time, now time.Time) {
	for name, asked := range variants {
		if now.Sub(asked) >= variantRest {
			delete(variants, name)
		}
	}
}
