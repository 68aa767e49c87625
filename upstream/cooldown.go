// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"net/http"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	// maxPause caps every cool-down, as policy caps what it reads from headers.
	maxPause = 7 * 24 * time.Hour
	// maxDomainPause caps the cool-down of a whole domain, because its hosts may belong
	// to different people.
	maxDomainPause = time.Hour
	// barePause is the cool-down after a 429 without a time. It doubles with each further
	// one in a row, up to maxBarePause.
	barePause    = time.Hour
	maxBarePause = 24 * time.Hour
	// remembered is how long a pause is remembered after its end: a 429 in this time is
	// one in a row.
	remembered = 24 * time.Hour
	// exemption is how long a good answer exempts a host from the pauses of its domain:
	// hosts of strangers that answer 429 must not keep it from being polled for ever.
	exemption = 24 * time.Hour
)

// pause is the cool-down of a host or of a registrable domain.
type pause struct {
	until    time.Time // zero: none
	step     int       // 429s in a row without a time
	halfOpen bool      // one request at a time, until the host answers well, as in a circuit breaker

	// Of a domain: the last host that answered 429, and until when that counts.
	limited      string
	limitedUntil time.Time
}

// end returns the end of the pause, which may be over.
func (p *pause) end() time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.until
}

func (p *pause) isHalfOpen() bool { return p != nil && p.halfOpen }

func (p *pause) forgettable(now time.Time) bool {
	return now.After(p.until.Add(remembered)) && now.After(p.limitedUntil)
}

// extend makes the pause last at least until a time.
func (p *pause) extend(until time.Time) {
	if until.After(p.until) {
		p.until = until
	}
	p.halfOpen = true
}

// pauseUntil is a pause that a response has made or extended.
type pauseUntil struct {
	scope, why string
	until      time.Time
	step       int
}

// hint is what a response says about when its host may be polled next.
type hint struct {
	status int       // 0: there was no response
	until  time.Time // the host must not be polled before; zero: no hint
	// urlOnly is set if the hint concerns only the URL: an IP literal, a private name or
	// a private address is often a bridge to many sites.
	urlOnly bool
}

// hintOf reads a response that was received at a time, which is now by the pacer's clock.
func hintOf(status int, header http.Header, at, now time.Time) hint {
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
	v := hint{status: status}
	if !hold.Until.IsZero() {
		v.until = now.Add(hold.Until.Sub(at))
	}
	return v
}

// record begins, extends or ends pauses according to a response. The caller holds the
// lock.
func (p *pacer) record(s *slot, v hint, now time.Time) []pauseUntil {
	if v.status == 0 || v.urlOnly {
		return nil // there was no response, or it does not concern the whole host
	}
	h, limited := s.host, v.status == http.StatusTooManyRequests
	switch {
	case limited:
		h.good = time.Time{}
	case v.status < http.StatusBadRequest:
		h.good = now
	}
	if !limited && v.until.IsZero() {
		for _, scope := range []string{h.scope, h.domain.scope} {
			if known := p.pauses[scope]; known != nil && !s.started.Before(known.until) {
				known.step, known.halfOpen = 0, false
			}
		}
		return nil
	}
	own := p.pauseOf(h.scope)
	if now.After(own.until.Add(remembered)) {
		own.step = 0
	}
	switch {
	case !limited:
		own.step = 0
		own.extend(v.until)
	case !v.until.IsZero():
		own.extend(v.until)
	case own.until.After(now):
		return nil // it was in flight when the pause began
	default:
		length := min(barePause<<min(own.step, 10), maxBarePause)
		own.step++
		own.extend(now.Add(length))
	}
	made := []pauseUntil{{h.scope, policy.HintHostCooldown, own.until, own.step}}
	if limited && h.domain.scope != "" {
		if until := p.pauseOf(h.domain.scope).limit(h.name, own.until, now); !until.IsZero() {
			made = append(made, pauseUntil{h.domain.scope, policy.HintDomainCooldown, until, 0})
		}
	}
	return made
}

// limit records a 429 of a host of the domain. If another host's 429 still counts, the
// whole domain pauses: one rate limiter is in front of all hosts.
func (p *pause) limit(host string, until, now time.Time) (paused time.Time) {
	if latest := now.Add(maxDomainPause); until.After(latest) {
		until = latest
	}
	if p.limited != host && p.limitedUntil.After(now) {
		p.extend(until)
		p.extend(p.limitedUntil)
		paused = p.until
	}
	if p.limited == host || until.After(p.limitedUntil) {
		p.limited, p.limitedUntil = host, until
	}
	return paused
}

func (p *pacer) pauseOf(scope string) *pause {
	known := p.pauses[scope]
	if known == nil {
		known = new(pause)
		p.pauses[scope] = known
	}
	return known
}

// paused returns until when a host must not be polled, and why.
func (p *pacer) paused(name, domain string, now time.Time) (until time.Time, why string) {
	if end := p.pauses[scopeHost+name].end(); end.After(now) {
		until, why = end, policy.HintHostCooldown
	}
	if p.hosts[name].exempt(now) {
		return until, why
	}
	if end := p.pauses[domain].end(); end.After(now) && !end.Before(until) {
		until, why = end, policy.HintDomainCooldown
	}
	return until, why
}

// exempt reports whether the pauses of its domain do not hold for the host.
func (h *host) exempt(now time.Time) bool {
	return h != nil && !h.good.IsZero() && now.Before(h.good.Add(exemption))
}

// pausedURL returns for how long a URL's host must not be polled, and why.
func (p *pacer) pausedURL(u feedurl.URL) (left time.Duration, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.now()
	until, why := p.paused(nameOf(u), scopeDomain+u.Domain(), now)
	return max(0, until.Sub(now)), why
}

// hold restores pauses of other processes.
func (p *pacer) hold(pauses []policy.Pause) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.now()
	for _, given := range pauses {
		if given.For <= 0 {
			continue
		}
		known := p.pauseOf(given.Scope)
		known.step = max(known.step, given.Step)
		known.extend(now.Add(min(given.For, maxPause)))
		if name, ok := strings.CutPrefix(given.Scope, scopeHost); ok && p.hosts[name] != nil {
			p.place(p.hosts[name], now)
			p.dispatch(p.hosts[name].domain)
		} else if name, ok := strings.CutPrefix(given.Scope, scopeDomain); ok && p.domains[name] != nil {
			p.replace(p.domains[name], now)
		}
	}
}
