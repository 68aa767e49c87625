// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"database/sql"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

const (
	// maxPause caps every pause.
	maxPause = 7 * 24 * time.Hour
	// maxDomainPause caps the pause of a whole domain, because its hosts may belong to
	// different people.
	maxDomainPause = time.Hour
	// barePause is the pause after a 429 without a time. It doubles with each further one in
	// a row, up to maxBarePause.
	barePause    = time.Hour
	maxBarePause = 24 * time.Hour
	// keepPause is how long a pause is kept after its end: a 429 in this time is one in a row.
	keepPause = 24 * time.Hour
	// exemptFor is how long a good answer exempts a host from the pauses of its domain: hosts
	// of other people that answer 429 must not keep it from being polled for ever. It is
	// longer than the interval of feeds that are polled once a day.
	exemptFor = 2 * 24 * time.Hour
)

// scopeLimited begins the scope of a row that is not a pause: it names the host of a domain
// that answered 429 last, and until when that counts.
const scopeLimited = "limited "

// answeredWell records that the host has answered well.
func (h *hostRow) answeredWell(tx Tx, now Time) {
	if h.good.Add(time.Hour) < now || h.good > now.Add(odd) { // not each poll writes it
		tx.Exec(`update host set good = ?2 where name = ?1`, h.name, int64(now))
	}
	if h.pauses[0].until != Never && h.pauses[0].until <= now {
		tx.Exec(`update pause set step = 0 where scope = ?1`, policy.ScopeHost+h.name)
	}
}

// pauseRow is a row of the table pause.
type pauseRow struct {
	until Time
	why   string
	step  int
}

// pauseAll records the pauses that hosts asked for in a poll.
func pauseAll(tx Tx, now Time, pauses []Pause) error {
	pauses = slices.Clone(pauses)
	slices.SortStableFunc(pauses, func(a, b Pause) int { return cmp.Compare(a.Scope, b.Scope) })
	for _, p := range pauses {
		if !p.Limited {
			pauseFor(tx, now, p)
		} else if err := limit(tx, now, p); err != nil {
			return err
		}
	}
	return nil
}

// pauseFor records a pause, unless a longer one is in force.
func pauseFor(tx Tx, now Time, p Pause) {
	if p.For <= 0 {
		return
	}
	tx.Exec(`insert into pause (scope, until, why, step) values (?1, ?2, ?3, ?4)
		on conflict (scope) do update set until = excluded.until, why = excluded.why, step = excluded.step
		where pause.until <= excluded.until or pause.until > ?5`, p.Scope, int64(now.Add(min(p.For, maxPause))), p.Why, int64(p.Step), int64(now.Add(maxPause+odd)))
}

// limit records the pause of a host that has answered 429, and that of its domain if
// another host's 429 still counts.
func limit(tx Tx, now Time, p Pause) error {
	rows, err := pauseRows(tx, now, p.Scope, scopeLimited+p.Domain)
	if err != nil {
		return err
	}
	host := strings.TrimPrefix(p.Scope, policy.ScopeHost)
	tx.Exec(`update host set good = null where name = ?1`, host)
	own := rows[0]
	if p.For > 0 {
		p.Step = own.step
	} else {
		if own.until > now {
			return nil // it was in flight when the pause began
		}
		if own.until.Add(keepPause) < now {
			own.step = 0
		}
		p.For = min(barePause<<min(max(0, own.step), 10), maxBarePause)
		p.Step = own.step + 1
	}
	pauseFor(tx, now, p)
	if p.Domain == "" {
		return nil
	}
	until := now.Add(min(max(p.For, own.until.Sub(now)), maxDomainPause))
	last := rows[1]
	if last.why != host && last.until > now {
		pauseFor(tx, now, Pause{Scope: policy.ScopeDomain + p.Domain, For: max(until, last.until).Sub(now), Why: policy.HintDomainCooldown})
	}
	if last.why == host || until > last.until {
		pauseFor(tx, now, Pause{Scope: scopeLimited + p.Domain, For: until.Sub(now), Why: host})
	}
	return nil
}

// pauseRows reads rows of the table pause. One that is missing or damaged ended long ago.
func pauseRows(tx Tx, now Time, scopes ...string) ([]pauseRow, error) {
	rows := make([]pauseRow, len(scopes))
	for i := range rows {
		rows[i].until = Never
	}
	err := tx.Query(`select until, why, step from pause where scope = ?1`, each(scopes, func(s string) []any { return []any{s} }),
		func(i int, row Row) error {
			var until sql.NullInt64
			err := row.Scan(&until, &rows[i].why, &rows[i].step)
			if rows[i].until = timeOf(until, Never); rows[i].until > now.Add(maxPause+odd) {
				rows[i] = pauseRow{until: Never}
			}
			return err
		})
	return rows, err
}
