// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// barePause is for how long a URL or a hub is left alone that answers 429 and does not say how long.
const barePause = time.Hour

// readPause records what a response says about its host. A 429, and a 503 with Retry-After, are a refusal
// of the host; any other Retry-After concerns its URL alone. So does a refusal by a host that another
// domain redirects to: anyone can make a URL that does. And so does the pause of a host whose port or
// address is private: such a host is often a bridge to many sites.
func (p *poll) readPause(resp *http.Response, urlOnly bool) {
	if p.client.noPacing {
		return
	}
	at, a, host := p.client.now(), &p.answer, p.client.Host(p.url)
	asked, limit := pauseOf(resp.StatusCode, resp.Header, at)
	limited := resp.StatusCode == http.StatusTooManyRequests
	refused := limited || resp.StatusCode == http.StatusServiceUnavailable && !asked.IsZero()
	why := policy.HintURLCooldown
	if host.Name != nameOf(p.ask.URL) {
		why = policy.HintRedirectCooldown
	}
	switch pause := (policy.Pause{Scope: policy.ScopeHost + host.Name, Why: policy.HintHostCooldown, Limited: limited, Domain: host.Domain}); {
	case urlOnly:
		why = policy.HintURLCooldown
	case refused && host.Domain == p.ask.URL.Domain():
		if host.Name == nameOf(p.ask.URL) {
			why = policy.HintHostCooldown
		}
		if !asked.IsZero() {
			pause.For = asked.Sub(at)
		}
		a.Pauses = append(a.Pauses, pause)
	case resp.StatusCode < http.StatusBadRequest:
		a.Good = append(a.Good, policy.Good{Host: host, RateLimit: limit.Raw != ""})
		if !limit.Until.IsZero() {
			pause.Why, pause.For = policy.HintRateLimit, limit.Until.Sub(at)
			a.Pauses = append(a.Pauses, pause)
		}
	}
	if limited && asked.IsZero() && !urlOnly {
		asked = at.Add(barePause)
	}
	if asked.After(a.NotBefore) {
		a.NotBefore, a.Holder = asked, why
	}
}

// pauseOf returns until when a response asks not to be asked again, zero if it does not, and what it says
// about a rate limit.
func pauseOf(status int, header http.Header, at time.Time) (asked time.Time, limit policy.Hold) {
	// RFC 9110 section 10.2.3 has Retry-After on 503 and redirects; origins also send
	// it with other failures and mean it. With a good response it concerns only that
	// resource, in the feed's own schedule.
	if status >= 300 && status != http.StatusNotModified {
		asked = policy.RetryAfter(header, at).Until
	}
	// draft-ietf-httpapi-ratelimit-headers: Retry-After has precedence. Any response can
	// show an exhausted limit.
	if limit = policy.RateLimit(header, at); asked.IsZero() {
		asked = limit.Until
	}
	return asked, limit
}
