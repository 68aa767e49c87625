// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/readers"
)

// Observe returns a request in the form that the statistics and the limiter of readers
// use, before it is answered.
func (e *Engine) Observe(r *http.Request, client Client, key string, feed *cache.Feed) readers.Request {
	asked := *r
	if u := OriginalURL(r); u != nil {
		asked.URL = u
	}
	request := readers.FromHTTP(&asked, key, client.Address, time.Now())
	if client.Forwarded() {
		request.Forwarded = strings.Join(r.Header["X-Forwarded-For"], ",")
	}
	request.Validators, request.SkipHours = feed.Standing(r.Header), feed.Hints().SkipHours
	return request
}

// Changes returns the usual time between two changes of a feed; 0: not known.
func (e *Engine) Changes(key string) time.Duration {
	c := e.cache.Load()
	if c == nil {
		return 0
	}
	return c.Changes(key)
}

// OriginalURL returns a request's URL before rewrites, or nil if Caddy has not recorded it.
func OriginalURL(r *http.Request) *url.URL {
	original, ok := r.Context().Value(caddyhttp.OriginalRequestCtxKey).(http.Request)
	if !ok {
		return nil
	}
	return original.URL
}

// Scheme returns the scheme of a request, as a trusted proxy says it.
func Scheme(r *http.Request) string {
	if proto := strings.ToLower(r.Header.Get("X-Forwarded-Proto")); (proto == "http" || proto == "https") && Trusted(r) {
		return proto
	}
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// User returns the name of the user whom a handler before this one has authenticated, or "".
func User(r *http.Request) string {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	user, _ := repl.GetString("http.auth.user.id")
	return user
}
