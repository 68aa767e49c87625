// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"errors"
	"slices"
	"time"
)

// siteRow is a row of the table host, which is of a site, with its pauses. It has no sum: a moment
// that it cannot have is ignored, so damage of it, or of a pause, is that of one spacing or pause.
type siteRow struct {
	name    string
	free    Time     // the last request to it was sent then
	good    Time     // it last answered well; Never if it has not
	all     pauseRow // of all its feeds
	fresh   pauseRow // of those without a version
	changed bool     // it has to be saved; pauses have a mark of their own
}

const (
	lockSite     = `select name from host where name = ?1`
	siteIfAbsent = `insert into host (name) values (?1) on conflict (name) do nothing`
	saveSite     = `update host set free = ?2, good = ?3 where name = ?1`
)

// siteByName reads a site, once for each of its pauses.
const siteByName = `select h.free, h.good, p.scope, p.until, p.why, p.step, p.url
	from host h left join pause p on p.scope in ('` + siteScope + `' || h.name, '` + newScope + `' || h.name) where h.name = ?1`

func newSiteRow(name string) *siteRow {
	return &siteRow{name: name, free: Never, good: Never, all: pauseRow{scope: siteScope + name, until: Never}, fresh: pauseRow{scope: newScope + name, until: Never}}
}

// odd is how far ahead a moment may be of the latest that it can be: clocks may go back a little.
const odd = 10 * time.Minute

// scan reads a row of [siteByName].
func (s *siteRow) scan(row Row) error {
	var (
		free, good      sql.NullInt64
		scope, why, url sql.NullString
		until, step     sql.NullInt64
	)
	err := row.Scan(&free, &good, &scope, &until, &why, &step, &url)
	s.free, s.good = timeOf(free, Never), timeOf(good, Never)
	p := &s.all
	if scope.String == s.fresh.scope {
		p = &s.fresh
	}
	if scope.Valid {
		p.until, p.why, p.step, p.url = timeOf(until, Never), why.String, int(step.Int64), url.String
	}
	return err
}

// nextAllowed returns when the site may be asked for a feed, and the pause that it has until then, if it has one.
func (s *siteRow) nextAllowed(hasVersion bool, spacing time.Duration, now Time) (at Time, p *pauseRow) {
	if at = s.free.Add(spacing); s.free > now.Add(odd) { // damaged
		at = now
	}
	if p = s.paused(hasVersion, now); p == nil {
		return at, nil
	}
	return max(at, p.until), p
}

// paused returns the longest pause that holds for a feed; nil if there is none.
func (s *siteRow) paused(hasVersion bool, now Time) (longest *pauseRow) {
	if s.all.holds(now) {
		longest = &s.all
	}
	if !hasVersion && s.fresh.holds(now) && (longest == nil || s.fresh.until > longest.until) {
		longest = &s.fresh
	}
	return longest
}

// ask records a request to the site.
func (s *siteRow) ask(now Time) { s.free, s.changed = now, true }

// lockSites locks the rows of sites, and adds those that are missing. An empty name does not name a site.
func lockSites(tx Tx, names ...string) (map[string]*siteRow, error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	slices.Sort(names)
	names = slices.Compact(names)
	rows := make(map[string]*siteRow, len(names))
	for range 3 { // another node may remove a row before it is locked
		for _, name := range names {
			tx.Exec(siteIfAbsent, name)
			tx.Lock(lockSite, name)
		}
		err := tx.Query(siteByName, each(names, func(name string) []any { return []any{name} }),
			func(i int, row Row) error {
				if rows[names[i]] == nil {
					rows[names[i]] = newSiteRow(names[i])
				}
				return rows[names[i]].scan(row)
			})
		if err != nil {
			return nil, err
		}
		if len(rows) == len(names) {
			return rows, nil
		}
	}
	return nil, errors.New("rows of sites disappear")
}

// save writes what has changed of the site and its pauses.
func (s *siteRow) save(tx Tx) {
	if s.changed {
		tx.Exec(saveSite, s.name, s.free.column(), s.good.column())
	}
	s.changed = false
	for _, p := range []*pauseRow{&s.all, &s.fresh} {
		p.save(tx)
	}
}

// saveSites writes what has changed of sites.
func saveSites(tx Tx, sites map[string]*siteRow) {
	for _, s := range sites {
		s.save(tx)
	}
}
