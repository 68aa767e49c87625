// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/httpcache"
	"github.com/feedpollard/pollard/readers"
)

// Observe is a request as the ledger of readers and the defences see it, before
// it is answered.
func (e *Engine) Observe(r *http.Request, key string, feed *cache.Feed) readers.Request {
	note := readers.FromHTTP(r, key, Client(r), time.Now())
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

// About is what is known of a feed, for judging its readers.
func (e *Engine) About(key string) readers.About {
	c := e.cache.Load()
	if c == nil {
		return readers.About{}
	}
	return readers.About{Changes: c.Changes(key)}
}

// SharedCache is the cache of the shields in rfc9111 mode, which they share. It
// is made when the first of them needs it, and lives as long as the engine.
func (e *Engine) SharedCache() (*httpcache.Cache, error) {
	e.sharedOnce.Do(func() {
		e.shared, e.sharedErr = httpcache.New(e.budget.Load())
	})
	return e.shared, e.sharedErr
}

// Variants bounds how many variants of one feed are kept: a site that tells
// readers apart by their User-Agent must not fill the store.
type Variants struct {
	mu    sync.Mutex
	known map[string]map[string]time.Time // of a feed's variants: when they were asked for last
}

const (
	// MaxVariants is how many of one feed are kept.
	MaxVariants    = 16
	maxVariedFeeds = 1024
	// variantRest is after how long without a reader a variant, or all those of a feed,
	// make room for others.
	variantRest = time.Hour
)

// Admit reports whether a variant of a feed may be kept.
func (v *Variants) Admit(feed, variant string, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	of := v.known[feed]
	if _, known := of[variant]; !known {
		if len(of) >= MaxVariants {
			rested(of, now)
		}
		if of == nil && len(v.known) >= maxVariedFeeds {
			for name, others := range v.known {
				if rested(others, now); len(others) == 0 {
					delete(v.known, name)
				}
			}
		}
		if len(of) >= MaxVariants || of == nil && len(v.known) >= maxVariedFeeds {
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

// Client returns the address of a client as Caddy sees it, trusted proxies
// considered. It is invalid where there is none, on a Unix socket for example.
func Client(r *http.Request) netip.Addr {
	text, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	address, err := netip.ParseAddr(text)
	if err != nil {
		return netip.Addr{}
	}
	return address.Unmap().WithZone("")
}

// OriginalURL returns a request's URL as it was before rewrites, nil where Caddy
// does not know.
func OriginalURL(r *http.Request) *url.URL {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok {
		return nil
	}
	return original.URL
}
