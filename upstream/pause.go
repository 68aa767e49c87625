// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// readPause records what a response says about its URL and its site.
//
// A refusal is a 429, a 503 with Retry-After, or another failure that shows a rate limit that is used up. It concerns
// the site, as a limit that is used up does with any response, but for two cases: anyone can make a URL that
// redirects to another site, and a private address or another port than HTTP's is often a bridge to many sites.
// Any other Retry-After concerns its URL alone.
func (p *poll) readPause(resp *http.Response, private bool) {
	if p.client.noPacing {
		return
	}
	at, a, site := p.client.now(), &p.answer, p.url.Site()
	asked, limit := pauseOf(resp.StatusCode, resp.Header, at)
	refused := resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable && !asked.IsZero()
	redirected := len(a.Moves) > 0
	switch foreign := site != p.ask.URL.Site(); {
	case private || foreign || p.url.Port() != "80" && p.url.Port() != "443":
	case !limit.Until.IsZero():
		a.Pauses = append(a.Pauses, policy.Pause{Site: site, Why: policy.HintRateLimit, For: limit.Until.Sub(at)})
	case refused && asked.IsZero():
		a.Pauses = append(a.Pauses, policy.Pause{Site: site, Why: policy.HintHostCooldown})
	case refused:
		a.Pauses = append(a.Pauses, policy.Pause{Site: site, Why: policy.HintHostCooldown, For: asked.Sub(at)})
	}
	if resp.StatusCode < http.StatusBadRequest {
		a.Good = append(a.Good, site)
	}
	if refused && asked.IsZero() && redirected {
		asked = at.Add(policy.BarePause)
	}
	if asked.IsZero() {
		return
	}
	why := policy.HintURLCooldown
	if redirected {
		why = policy.HintRedirectCooldown
		if a.Hops == nil {
			a.Hops = make(map[string]time.Duration)
		}
		a.Hops[p.url.String()] = asked.Sub(at)
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
