// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/readers"
)

// Observe returns a request in the form that the statistics and the limiter of readers
// use, before it is answered.
func (e *Engine) Observe(r *door.Request, key string, feed *cache.Feed) readers.Request {
	sent := *r.Request
	sent.URL = r.Sent
	now := time.Now()
	request := readers.FromHTTP(&sent, key, r.Client.Address, now)
	if r.Client.Forwarded() {
		request.Forwarded = strings.Join(r.Header["X-Forwarded-For"], ",")
	}
	request.Validators, request.SkipHours = feed.Standing(r.Header, now), feed.Hints().SkipHours
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
