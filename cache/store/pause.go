// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

const (
	// maxPause caps the pause of a URL, and maxSitePause that of a site.
	maxPause     = 7 * 24 * time.Hour
	maxSitePause = 24 * time.Hour
	// firstPause is the pause of a site that has refused a request. It doubles with each further
	// refusal in a row, up to maxSitePause.
	firstPause = time.Hour
	// newPause is the same for feeds that never gave a version, while the site answers others well.
	newPause = 10 * time.Minute
	// maxLimited caps the pause of a site whose rate limit is used up.
	maxLimited = 10 * time.Minute
	// keepPause is how long a pause is kept after its end: a refusal in this time is one in a row.
	keepPause = 24 * time.Hour
)

// The scopes of pauses: the name of the site follows.
const (
	siteScope = "site "
	newScope  = "new "
	// Version 2 of the tables had pauses of hosts: the rank for which it holds may follow. Those of limits had none.
	hostScope  = "host "
	limitScope = "ratelimit "
)

// pauseRow is a row of the table pause.
type pauseRow struct {
	scope string
	until Time
	why   string
	step  int    // refusals in a row
	url   string // the feed whose poll was refused; empty if it is not known

	changed bool // it has to be saved
}

// pause returns the pause as the engine sees it.
func (p pauseRow) pause(now Time) Pause {
	site, isNew := strings.CutPrefix(p.scope, newScope)
	return Pause{Site: strings.TrimPrefix(site, siteScope), New: isNew, For: p.until.Sub(now), Why: p.why, Step: p.step, URL: p.url}
}

// scopeOf returns the scope of a pause.
func scopeOf(p Pause) string {
	if p.New {
		return newScope + p.Site
	}
	return siteScope + p.Site
}

// save writes the pause if it has changed.
func (p *pauseRow) save(tx Tx) {
	if p.changed {
		tx.Exec(`insert into pause (scope, until, why, step, url) values (?1, ?2, ?3, ?4, ?5) on conflict (scope) do update
			set until = excluded.until, why = excluded.why, step = excluded.step, url = excluded.url`,
			p.scope, int64(max(p.until, 0)), p.why, int64(p.step), p.url)
	}
	p.changed = false
}

// holds reports whether the pause is in force. One that ends later than any may is damaged.
func (p *pauseRow) holds(now Time) bool { return p.until > now && p.until <= now.Add(maxSitePause+odd) }

// answeredWell records that the site has given a good answer. That ends the doubling of its pauses, and
// no pause.
func (s *siteRow) answeredWell(now Time) {
	s.good, s.changed = now, true
	for _, p := range []*pauseRow{&s.all, &s.fresh} {
		if p.step > 0 {
			p.step, p.changed = 0, true
		}
	}
}

// refused records that the site has refused a poll of a feed, and for how long it asked to be left alone; 0 if
// it did not say. refused is when a poll of the feed was refused before. The pause of the URL stands in its row. The
// site waits as well, but for two cases.
func (s *siteRow) refused(now Time, f *feedRow, refused Time, asked time.Duration) {
	switch {
	case refused != Never && s.good > refused: // this URL refuses, and the site does not
		return
	case f.first == Never && !f.configured(now): // only redirects lead here: anyone can make one
		return
	}
	p, length := &s.all, firstPause
	if f.version == 0 { // it may have been made up
		p = &s.fresh
	}
	switch well := s.good != Never && s.good.Add(keepPause) > now; {
	case p == &s.fresh && well:
		p.step, length = 0, newPause
	case p.holds(now) && p.step > 0:
		p.step-- // it was in flight when the pause began: they count as one
	case p.until.Add(keepPause) <= now:
		p.step = 0
	}
	length = min(length<<min(p.step, 10), maxSitePause)
	p.step++
	if asked > 0 {
		length = min(length, asked)
	}
	p.extend(now, length, policy.HintHostCooldown, f.url)
}

// limited records that a poll of a feed has used up a rate limit of the site, or found it used up.
func (s *siteRow) limited(now Time, f *feedRow, left time.Duration) {
	p := &s.all
	if f.version == 0 {
		p = &s.fresh
	}
	p.extend(now, min(left, maxLimited), policy.HintRateLimit, f.url)
}

// extend has the pause last for so long from now on, unless it lasts longer.
func (p *pauseRow) extend(now Time, length time.Duration, why, url string) {
	if !p.holds(now) {
		p.until = now
	}
	if until := now.Add(length); until > p.until {
		p.until, p.why, p.url = until, why, url
	}
	p.changed = true
}

// pause records what sites asked for in a poll of the feed, before its own version changes.
func (f *feedRow) pause(now Time, sites map[string]*siteRow, pauses []Pause) {
	for _, p := range pauses {
		s := sites[p.Site]
		if p.Why == policy.HintRateLimit {
			if s != nil {
				s.limited(now, f, p.For)
			}
			continue
		}
		before := f.refused
		if f.refused = now; s != nil {
			s.refused(now, f, before, p.For)
		}
	}
}

// restorePause records a pause as it is given, unless a longer one is in force. One that has ended holds for nothing.
func restorePause(tx Tx, now Time, p Pause) {
	tx.Exec(`insert into pause (scope, until, why, step, url) values (?1, ?2, ?3, ?4, ?6)
		on conflict (scope) do update set until = excluded.until, why = excluded.why, step = excluded.step, url = excluded.url
		where pause.until <= excluded.until or pause.until > ?5`,
		scopeOf(p), int64(now.Add(min(p.For, maxSitePause))), p.Why, int64(p.Step), int64(now.Add(maxSitePause+odd)), p.URL)
}

// moveTo makes a site's row that of the feed, whose row was that of a host in version 2 of the tables. A pause of
// that host holds for the feed, and for an hour at most for the site.
func (f *feedRow) moveTo(now Time, name string, s *siteRow, pauses []pauseRow) {
	f.site, f.earlier = name, false
	if f.next != End {
		f.next = min(f.next, now.Add(longestNext))
	}
	for _, p := range pauses {
		if !p.holds(now) {
			continue
		}
		until := Never
		if s != nil {
			s.all.extend(now, min(p.until.Sub(now), firstPause), p.why, p.url)
			until = s.all.until
		}
		if p.until > until {
			f.earliest = max(f.earliest, p.until)
			f.next = max(f.next, f.earliest)
		}
	}
}

// pausesBefore reads the pauses of the host of a feed whose row an earlier version of the tables wrote.
func (f *feedRow) pausesBefore(tx Tx) (pauses []pauseRow, err error) {
	if !f.earlier || f.site == "" {
		return nil, nil
	}
	scopes := make([]any, 6, 7)
	for rank := range scopes {
		if scopes[rank] = hostScope + f.site; rank > 0 {
			scopes[rank] = fmt.Sprint(hostScope, f.site, " ", rank)
		}
	}
	scopes = append(scopes, limitScope+f.site)
	err = tx.Query(`select until, why, url from pause where scope in (?1, ?2, ?3, ?4, ?5, ?6, ?7)`, [][]any{scopes}, func(_ int, row Row) error {
		var p pauseRow
		var url sql.NullString
		err := row.Scan((*int64)(&p.until), &p.why, &url)
		p.url = url.String
		pauses = append(pauses, p)
		return err
	})
	return pauses, err
}
