// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/readers"
)

// Observe is a request as the ledger of readers and the defences see it, before
// it is answered. The client is who [Client] says.
func (e *Engine) Observe(r *http.Request, client netip.Addr, key string, feed *cache.Feed) readers.Request {
	note := readers.FromHTTP(r, key, client, time.Now())
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
