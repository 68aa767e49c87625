// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// hostRow is a row of the table host, which is of a site, with its pauses. It has no sum: a moment
// that it cannot have is ignored, so damage of it, or of a pause, is that of one spacing or pause.
// If a name is damaged, all rows are made again: see [remakeHosts].
type hostRow struct {
	name   string
	free   Time             // the last request to it was sent then
	good   Time             // it last answered well; Never: it has not
	turn   int64            // how many polls it has had: see [rankOfSlot]
	served [ranks + 1]Owner // whose feed of each rank was polled last
	site   pauseRow         // of all its feeds
	fresh  pauseRow         // of those without a version
}

const (
	lockHost   = `select name from host where name = ?1`
	hostsReady = `select name from host where ready <= ?1 and ready >= ?3 order by ready limit ?2 for update skip locked`
	hostsCalm  = `select name from host where ready <= ?1 and ready >= ?3 and calm <= ?1 order by ready limit ?2 for update skip locked`
	firstReady = `select ready from host where ready >= ?1 order by ready limit 1`

	hostIfAbsent = `insert into host (name) values (?1) on conflict (name) do nothing`
)

// hostByName reads a site, once for each of its pauses.
const hostByName = `select h.free, h.good, h.turn, h.served_2, h.served_3, h.served_4, h.served_5,
	p.scope, p.until, p.why, p.step, p.url from host h left join pause p on p.scope in ('` + siteScope + `' || h.name, '` + newScope + `' || h.name) where h.name = ?1`

func newHostRow(name string) *hostRow {
	return &hostRow{name: name, free: Never, good: Never, site: pauseRow{scope: siteScope + name, until: Never}, fresh: pauseRow{scope: newScope + name, until: Never}}
}

// odd is how far ahead a moment may be of the latest that it can be: clocks may go back a little.
const odd = time.Minute

// scan reads a row of [hostByName].
func (h *hostRow) scan(row Row) error {
	var (
		free, good, turn sql.NullInt64
		served           [4]sql.NullInt64
		scope, why, url  sql.NullString
		until, step      sql.NullInt64
	)
	err := row.Scan(&free, &good, &turn, &served[0], &served[1], &served[2], &served[3], &scope, &until, &why, &step, &url)
	h.free, h.good, h.turn = timeOf(free, Never), timeOf(good, Never), turn.Int64
	for i, owner := range served {
		h.served[RankNamed+Rank(i)] = Owner(owner.Int64)
	}
	p := &h.site
	if scope.String == h.fresh.scope {
		p = &h.fresh
	}
	if scope.Valid {
		p.until, p.why, p.step, p.url = timeOf(until, Never), why.String, int(step.Int64), url.String
	}
	return err
}

// mayAsk returns when the site may be asked for a feed, and the pause that it has until then, if it has one.
func (h *hostRow) mayAsk(hasVersion bool, spacing time.Duration, now, since Time) (at Time, p *pauseRow) {
	if at = h.free.Add(spacing); h.free > now.Add(odd) { // damaged
		at = now
	}
	if nameOf(h.name) != "" && spacing > 0 {
		at = max(at, since.Add(spacing))
	}
	if p = h.paused(hasVersion, now); p == nil {
		return at, nil
	}
	return max(at, p.until), p
}

// paused returns the longest pause that holds for a feed; nil if there is none.
func (h *hostRow) paused(hasVersion bool, now Time) (longest *pauseRow) {
	if h.site.holds(now) {
		longest = &h.site
	}
	if !hasVersion && h.fresh.holds(now) && h.fresh.until > h.site.until {
		longest = &h.fresh
	}
	return longest
}

// open returns the ranks for whose feeds the site may be asked now, whatever its spacing is: all or none.
func (h *hostRow) open(now Time) (open []Rank) {
	if h.site.holds(now) {
		return nil
	}
	for r := RankOperator; int(r) <= ranks; r++ {
		open = append(open, r)
	}
	return open
}

// start records a request to the site, for a feed of a rank and owner. In this rank the next turn is
// the next owner's.
func (h *hostRow) start(tx Tx, now Time, r Rank, owner Owner) {
	h.free, h.turn, h.served[r] = now, h.turn+1, owner
	tx.Exec(`update host set free = ?2, turn = ?3, served_2 = ?4, served_3 = ?5, served_4 = ?6, served_5 = ?7 where name = ?1`,
		h.name, int64(h.free), h.turn, int64(h.served[RankNamed]), int64(h.served[RankNamedNew]), int64(h.served[RankPublic]), int64(h.served[RankPublicNew]))
}

// lockHosts locks the rows of hosts, and adds those that are missing.
func lockHosts(tx Tx, names ...string) (map[string]*hostRow, error) {
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.Compact(names)
	rows := make(map[string]*hostRow, len(names))
	for range 3 { // another node may remove a row before it is locked
		for _, name := range names {
			tx.Exec(hostIfAbsent, name)
			tx.Lock(lockHost, name)
		}
		err := tx.Query(hostByName, each(names, func(name string) []any { return []any{name} }),
			func(i int, row Row) error {
				if rows[names[i]] == nil {
					rows[names[i]] = newHostRow(names[i])
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
	return nil, errors.New("rows of hosts disappear")
}

// remakeHosts makes the rows of all hosts again from their feeds. No host is asked within its spacing
// after that. Pauses stay, as they have rows of their own.
func remakeHosts(tx Tx) {
	tx.Log().Error("the name of a host is damaged: the rows of hosts are made again")
	tx.Exec(`delete from host`)
	tx.Exec(`insert into host (name, free, ready, calm) select cast(site as text), ?1, ?1, ?1
		from feed where url is not null and site > '' group by 1`, int64(tx.Now()))
}

// feedPrefix begins the name of a row of one feed: a [Host] without a site is not paced.
const feedPrefix = "feed "

// row returns the name of the host row that a feed waits for.
func (f *feedRow) row() string { return hostRowOf(f.id, f.host) }

func hostRowOf(id ID, host Host) string {
	if host.Site == "" {
		return feedPrefix + hex.EncodeToString(id[:])
	}
	return host.Site
}

func nameOf(row string) string {
	if strings.HasPrefix(row, feedPrefix) {
		return ""
	}
	return row
}

// setReady sets when a site can be polled for its first feed of any rank, and for that of ranks 1 and 2. That
// is never before the moment at which it is set, so claims do not have to look at what is left of
// older values: see [Database.oldest]. setReadyNew is the same while feeds without a version wait longer.
var setReady, setReadyNew = readySQL("", "?3"), readySQL("version > 0", "?3", "version = 0", "?4")

func readySQL(conditions ...string) string {
	var firsts []string
	for r := RankOperator; int(r) <= ranks; r++ {
		for i := 0; i < len(conditions); i += 2 {
			of := ""
			if conditions[i] != "" {
				of = " and " + conditions[i]
			}
			free, wait := `cast(?2 as bigint) + spacing`, `cast(`+conditions[i+1]+` as bigint)`
			firsts = append(firsts, fmt.Sprintf(`select %d as rank, (select case when due >= %s and due >= %s then due when %[2]s >= %[3]s then %[2]s else %[3]s end
				from feed where site = ?1 and %[4]s = %[1]d and due is not null%[5]s order by due limit 1) as at`, r, free, wait, rankColumn, of))
		}
	}
	return `update host set (calm, ready) = (select min(case when rank <= 2 then at end), min(at) from (` +
		strings.Join(firsts, ` union all `) + `) firsts) where name = ?1`
}

// readyWhen sets when sites can be polled next, by their rows, their pauses and their first feeds. It is
// called by each transaction that lets a feed be due earlier, and the site is locked.
func readyWhen(tx Tx, hosts ...*hostRow) {
	now := tx.Now()
	for _, h := range hosts {
		at, free := now, now.Add(-maxSitePause)
		if h.site.holds(now) {
			at = h.site.until
		}
		if h.free != Never && h.free <= now.Add(odd) {
			free = h.free
		}
		if h.fresh.holds(now) && h.fresh.until > at {
			tx.Exec(setReadyNew, h.name, int64(free), int64(at), int64(h.fresh.until))
		} else {
			tx.Exec(setReady, h.name, int64(free), int64(at))
		}
	}
}
