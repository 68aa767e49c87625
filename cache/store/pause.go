// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

const (
	// maxPause caps the pause of a URL, and maxHostPause that of a host.
	maxPause     = 7 * 24 * time.Hour
	maxHostPause = 24 * time.Hour
	// maxDomainPause caps the pause of a whole domain, because its hosts may belong to
	// different people.
	maxDomainPause = time.Hour
	// firstPause is the pause of a host that has refused a request. It doubles with each further
	// one in a row, up to maxHostPause.
	firstPause = time.Hour
	// maxRateLimit caps the pause of a host whose rate limit was used up by a good answer.
	maxRateLimit = 10 * time.Minute
	// keepPause is how long a pause is kept after its end: a refusal in this time is one in a row.
	keepPause = 24 * time.Hour
	// exemptFor is how long a good answer exempts a host from the pauses of its domain: hosts
	// of other people that answer 429 must not keep it from being polled for ever. It is
	// longer than the interval of feeds that are polled once a day.
	exemptFor = 2 * 24 * time.Hour
)

const (
	// scopeLimited begins the scope of a row that is not a pause: it names the host of a domain
	// that answered 429 last, and until when that counts.
	scopeLimited = "limited "
	// scopeRateLimit begins that of a host whose rate limit is used up. It has the best rank of the
	// feeds whose answers said so as its step.
	scopeRateLimit = "ratelimit "
)

// pauseRow is a row of the table pause.
type pauseRow struct {
	scope string
	rank  Rank // it holds for feeds of this rank and below; 0: for all
	until Time
	why   string
	step  int    // pauses in a row
	url   string // the feed whose poll was refused; empty: not known
	token Token  // of that poll; 0: not known
}

func newPauseRow(scope string, until Time, why string, step int, url string) pauseRow {
	p := pauseRow{scope: scope, until: until, why: why, step: step, url: url}
	fields := strings.Split(scope, " ")
	if r, err := strconv.Atoi(fields[len(fields)-1]); len(fields) == 3 && err == nil {
		p.rank = Rank(r)
	}
	return p
}

// holds reports whether feeds of a rank wait for the pause. A better rank finds out by its own next poll;
// of a rate limit it has found out if its own last good answer said something of one.
func (p *pauseRow) holds(h *hostRow, r Rank, now Time) bool {
	switch {
	case strings.HasPrefix(p.scope, policy.ScopeDomain):
		return r >= p.rank && !h.exempt(now)
	case strings.HasPrefix(p.scope, scopeRateLimit):
		return p.until <= now.Add(maxRateLimit+odd) && (int(r) >= p.step || h.plain&(1<<r) == 0)
	}
	return r >= p.rank
}

// exempt reports whether the host has answered well lately.
func (h *hostRow) exempt(now Time) bool { return h.good.Add(exemptFor) > now && h.good <= now.Add(odd) }

// pause returns the pause as the engine sees it.
func (p pauseRow) pause(now Time) Pause {
	return Pause{Scope: p.scope, For: p.until.Sub(now), Why: p.why, Step: p.step, Rank: int(p.rank), URL: p.url}
}

// of returns the pause of the host with a scope, or one that ended long ago.
func (h *hostRow) pauseOf(scope string) *pauseRow {
	for i := range h.pauses {
		if h.pauses[i].scope == scope {
			return &h.pauses[i]
		}
	}
	h.pauses = append(h.pauses, newPauseRow(scope, Never, "", 0, ""))
	return &h.pauses[len(h.pauses)-1]
}

func (p *pauseRow) save(tx Tx, now Time) {
	tx.Exec(`insert into pause (scope, until, why, step, url, token) values (?1, ?2, ?3, ?4, ?5, ?6) on conflict (scope) do update
		set until = excluded.until, why = excluded.why, step = excluded.step, url = excluded.url, token = excluded.token`,
		p.scope, int64(max(p.until, 0)), p.why, int64(p.step), p.url, int64(p.token))
}

// answeredWell records that the host has given a good answer to a feed: pauses of its rank and below end, and
// those of its domain and of a rate limit may hold for fewer feeds. It reports whether there were any. A pause
// still holds if the poll that was refused was claimed after this one.
func (h *hostRow) answeredWell(tx Tx, now Time, f *feedRow, rateLimit bool) (were bool) {
	r := f.rank()
	plain := h.plain &^ (1 << r)
	if !h.exempt(now) { // what it answered before has been forgotten, or will be
		plain = 0
	}
	if !rateLimit {
		plain |= 1 << r
	}
	if h.good.Add(time.Hour) <= now || h.good > now.Add(odd) || plain != h.plain { // not each poll writes it
		h.good, h.plain = now, plain
		tx.Exec(`update host set good = ?2, plain = ?3 where name = ?1`, h.name, int64(now), plain)
	}
	for i := range h.pauses {
		p := &h.pauses[i]
		were = were || p.until > now
		if strings.HasPrefix(p.scope, policy.ScopeHost) && p.rank >= r && (p.until > now || p.step > 0) && p.token <= f.token {
			p.until, p.step = min(p.until, now), 0
			p.save(tx, now)
		}
	}
	return were
}

// refused records that the host has refused to answer a feed: feeds of its rank and below wait for an
// hour, and twice as long with each further refusal in a row, but not for longer than was asked.
func (h *hostRow) refused(tx Tx, now Time, f *feedRow, asked Pause) error {
	p := h.pauseOf(fmt.Sprint(policy.ScopeHost, h.name, " ", int(f.rank())))
	switch {
	case p.until > now && p.until <= now.Add(maxHostPause+odd):
		p.step = max(0, p.step-1) // it was in flight when the pause began, or by hand: they count as one
	case p.until == Never || p.until.Add(keepPause) <= now:
		p.step = 0
	}
	length := min(firstPause<<min(max(0, p.step), 10), maxHostPause)
	if asked.For > 0 {
		length = min(length, asked.For)
	}
	if p.until > now.Add(maxHostPause+odd) {
		p.until = now
	}
	p.until, p.why, p.step, p.url, p.token = max(p.until, now.Add(length)), asked.Why, p.step+1, f.url, max(p.token, f.token)
	p.save(tx, now)
	if !asked.Limited || asked.Domain == "" {
		return nil
	}
	return h.limited(tx, now, f.rank(), *p, asked.Domain)
}

// limited records that the host has answered 429, and pauses its domain if another host's 429
// still counts for the rank.
func (h *hostRow) limited(tx Tx, now Time, r Rank, own pauseRow, domain string) error {
	own.scope = fmt.Sprint(scopeLimited, domain, " ", int(r))
	own.until = min(own.until, now.Add(maxDomainPause))
	last := pauseRow{until: Never}
	err := tx.Query(`select until, why from pause where scope = ?1`, one(own.scope), func(_ int, row Row) error {
		return row.Scan((*int64)(&last.until), &last.why)
	})
	if last.until > now.Add(maxDomainPause+odd) {
		last.until = Never
	}
	if last.why != h.name && last.until > now {
		all := own
		all.scope, all.until, all.why = fmt.Sprint(policy.ScopeDomain, domain, " ", int(r)), max(own.until, last.until), policy.HintDomainCooldown
		all.save(tx, now)
		*h.pauseOf(all.scope) = newPauseRow(all.scope, all.until, all.why, all.step, all.url)
	}
	if last.why == h.name || own.until > last.until {
		own.why = h.name
		own.save(tx, now)
	}
	return err
}

// rateLimited records that an answer to a feed has used up the rate limit of the host.
func (h *hostRow) rateLimited(tx Tx, now Time, f *feedRow, asked Pause) {
	p, r := h.pauseOf(scopeRateLimit+h.name), int(f.rank())
	if p.until > now && p.until <= now.Add(maxRateLimit+odd) {
		r = min(r, p.step)
	} else {
		p.until = now
	}
	p.until, p.why, p.step, p.url = max(p.until, now.Add(min(asked.For, maxRateLimit))), asked.Why, r, f.url
	p.save(tx, now)
}

// pauseAll records what hosts asked for in a poll of a feed.
func pauseAll(tx Tx, now Time, f *feedRow, hosts map[string]*hostRow, pauses []Pause) error {
	for _, p := range pauses {
		h := hosts[strings.TrimPrefix(p.Scope, policy.ScopeHost)]
		switch {
		case h == nil:
		case p.Why == policy.HintRateLimit:
			h.rateLimited(tx, now, f, p)
		default:
			if err := h.refused(tx, now, f, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// restorePause records a pause as it is given, unless a longer one is in force.
func restorePause(tx Tx, now Time, p Pause) {
	if p.For <= 0 {
		return
	}
	tx.Exec(`insert into pause (scope, until, why, step, url) values (?1, ?2, ?3, ?4, ?6)
		on conflict (scope) do update set until = excluded.until, why = excluded.why, step = excluded.step, url = excluded.url, token = null
		where pause.until <= excluded.until or pause.until > ?5`,
		p.Scope, int64(now.Add(min(p.For, maxHostPause))), p.Why, int64(p.Step), int64(now.Add(maxHostPause+odd)), p.URL)
}
