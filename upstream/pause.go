// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// readPause records what a response says about its host. The pause of a host whose port or
// address is private concerns only the URL: such a host is often a bridge to many sites.
func (p *poll) readPause(resp *http.Response, urlOnly bool) {
	if p.client.noPacing {
		return
	}
	at, a := p.client.now(), &p.answer
	until := pauseOf(resp.StatusCode, resp.Header, at)
	why := policy.HintHostCooldown
	if host := p.client.Host(p.url); urlOnly {
		why = policy.HintURLCooldown
	} else {
		limited := resp.StatusCode == http.StatusTooManyRequests
		if limited || !until.IsZero() {
			pause := policy.Pause{Scope: policy.ScopeHost + host.Name, Why: why, Limited: limited, Domain: host.Domain}
			if !until.IsZero() {
				pause.For = until.Sub(at)
			}
			a.Pauses = append(a.Pauses, pause)
		}
		if resp.StatusCode < http.StatusBadRequest {
			a.Good = append(a.Good, host)
		}
		if host.Name != nameOf(p.ask.URL) {
			why = policy.HintRedirectCooldown
		}
	}
	if until.After(a.NotBefore) {
		a.NotBefore, a.Holder = until, why
	}
}

// pauseOf returns until when a response asks its host not to be polled; zero: it does not.
func pauseOf(status int, header http.Header, at time.Time) time.Time {
	var hold policy.Hold
	// RFC 9110 section 10.2.3 has Retry-After on 503 and redirects; origins also send
	// it with other failures and mean it. With a good response it concerns only that
	// resource, in the feed's own schedule.
	if status >= 300 && status != http.StatusNotModified {
		hold = policy.RetryAfter(header, at)
	}
	// draft-ietf-httpapi-ratelimit-headers: Retry-After has precedence. Any response can
	// show an exhausted limit.
	if hold.Until.IsZero() {
		hold = policy.RateLimit(header, at)
	}
	return hold.Until
}
