// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// hostRow is a row of the table host, with the pauses that hold for it. It has no sum: a moment
// that it cannot have is ignored, so damage of it, or of a pause, is that of one spacing or pause.
// If a name is damaged, all rows are made again: see [remakeHosts].
type hostRow struct {
	name, domain string
	free         Time
	turn         int64            // how many polls it has had: see [rankOfSlot]
	served       [ranks + 1]Owner // whose feed of each rank was polled last
	good         Time             // it last answered well; [Never]: never
	plain        int64            // 1<<r: its last good answer to a feed of rank r said nothing of a rate limit
	pauses       []pauseRow       // of the host and of its domain
}

const (
	lockHost   = `select name from host where name = ?1`
	hostsReady = `select name from host where ready <= ?1 and ready >= ?3 order by ready limit ?2 for update skip locked`
	hostsCalm  = `select name from host where ready <= ?1 and ready >= ?3 and calm <= ?1 order by ready limit ?2 for update skip locked`
	firstReady = `select ready from host where ready >= ?1 order by ready limit 1`

	hostIfAbsent = `insert into host (name, domain) values (?1, ?2) on conflict (name) do nothing`
)

// hostByName reads a host, once for each of its pauses.
var hostByName = fmt.Sprintf(`select h.domain, h.free, h.turn, h.served_2, h.served_3, h.served_4, h.served_5, h.good, h.plain,
	p.scope, p.until, p.why, p.step, p.url, p.token from host h left join pause p on p.scope in ('%s' || h.name, %s, %s) where h.name = ?1`,
	scopeRateLimit, scopesOf(policy.ScopeHost, `h.name`), scopesOf(policy.ScopeDomain, `coalesce(?2, h.domain)`))

// scopesOf returns the scopes that a host or domain has, in SQL: one for all ranks, and one for each.
func scopesOf(kind, name string) string {
	scopes := fmt.Sprintf(`'%s' || %s`, kind, name)
	for r := range ranks {
		scopes += fmt.Sprintf(`, '%s' || %s || ' %d'`, kind, name, r+1)
	}
	return scopes
}

// odd is how far ahead a moment may be of the latest that it can be: clocks may go back a little.
const odd = time.Minute

// scan reads a row of [hostByName].
func (h *hostRow) scan(row Row) error {
	var (
		domain             sql.NullString
		free, good, plain  sql.NullInt64
		turn               sql.NullInt64
		served             [4]sql.NullInt64
		scope, why, url    sql.NullString
		until, step, token sql.NullInt64
	)
	err := row.Scan(&domain, &free, &turn, &served[0], &served[1], &served[2], &served[3], &good, &plain, &scope, &until, &why, &step, &url, &token)
	h.domain, h.free, h.turn, h.good, h.plain = domain.String, timeOf(free, 0), turn.Int64, timeOf(good, Never), plain.Int64
	for i, owner := range served {
		h.served[RankNamed+Rank(i)] = Owner(owner.Int64)
	}
	if scope.Valid {
		p := newPauseRow(scope.String, timeOf(until, Never), why.String, int(step.Int64), url.String)
		p.token = Token(token.Int64)
		h.pauses = append(h.pauses, p)
	}
	return err
}

// mayAsk returns when the host may be asked for a feed of a rank, and the pause that it has until then,
// if it has one. A poll by hand of a feed of the operator waits for no pause.
func (h *hostRow) mayAsk(r Rank, byHand bool, spacing time.Duration, now, since Time) (at Time, p *pauseRow) {
	at = h.free
	if at > now.Add(spacing+odd) { // or the spacing has been shortened
		at = now
	}
	if nameOf(h.name) != "" && spacing > 0 {
		at = max(at, since.Add(spacing))
	}
	if p = h.paused(r, now); p == nil || byHand && r == RankOperator {
		return at, nil
	}
	return max(at, p.until), p
}

// open returns the ranks for whose feeds the host may be asked now, whatever its spacing is.
func (h *hostRow) open(now, since Time) (open []Rank) {
	for r := RankOperator; int(r) <= ranks; r++ {
		if at, _ := h.mayAsk(r, false, 0, now, since); at <= now {
			open = append(open, r)
		}
	}
	return open
}

// paused returns the longest pause that holds for feeds of a rank. Nil: there is none.
func (h *hostRow) paused(r Rank, now Time) (longest *pauseRow) {
	for i := range h.pauses {
		if p := &h.pauses[i]; p.until > now && p.until <= now.Add(maxPause+odd) && p.holds(h, r, now) && (longest == nil || p.until > longest.until) {
			longest = p
		}
	}
	return longest
}

// start records a request to the host, for a feed of a rank and owner. In this rank the next turn is
// the next owner's.
func (h *hostRow) start(tx Tx, now Time, host Host, r Rank, owner Owner) {
	h.free, h.turn, h.served[r] = now.Add(host.Spacing), h.turn+1, owner
	tx.Exec(`update host set domain = ?2, free = ?3, turn = ?4, served_2 = ?5, served_3 = ?6, served_4 = ?7, served_5 = ?8 where name = ?1`,
		h.name, host.Domain, int64(h.free), h.turn, int64(h.served[RankNamed]), int64(h.served[RankNamedNew]), int64(h.served[RankPublic]), int64(h.served[RankPublicNew]))
}

// lockHosts locks the rows of hosts, and adds those that are missing.
func lockHosts(tx Tx, domains map[string]string) (map[string]*hostRow, error) {
	names := slices.Sorted(maps.Keys(domains))
	rows := make(map[string]*hostRow, len(names))
	for range 3 { // another node may remove a row before it is locked
		for _, name := range names {
			tx.Exec(hostIfAbsent, name, domains[name])
			tx.Lock(lockHost, name)
		}
		err := tx.Query(hostByName, each(names, func(name string) []any { return []any{name, domains[name]} }),
			func(i int, row Row) error {
				if rows[names[i]] == nil {
					rows[names[i]] = &hostRow{name: names[i]}
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
	tx.Exec(`insert into host (name, domain, free, ready, calm) select cast(host as text), max(domain), ?1 + max(spacing), ?1, ?1
		from feed where url is not null and host > '' group by 1`, int64(tx.Now()))
}

// feedPrefix begins the name of a host row of one feed: [Host] without a name is not paced.
const feedPrefix = "feed "

// row returns the name of the host row that a feed waits for.
func (f *feedRow) row() string { return hostRowOf(f.id, f.host) }

func hostRowOf(id ID, host Host) string {
	if host.Name == "" {
		return feedPrefix + hex.EncodeToString(id[:])
	}
	return host.Name
}

func nameOf(row string) string {
	if strings.HasPrefix(row, feedPrefix) {
		return ""
	}
	return row
}

// setReady sets when a host can be polled for its first feed of any rank, and for that of ranks 1 and 2. That
// is never before the moment at which it is set, so claims do not have to look at what is left of
// older values: see [Database.oldest].
var setReady = func() string {
	firsts := make([]string, ranks)
	for i := range firsts {
		firsts[i] = fmt.Sprintf(`select %d as rank, (select case when due > ?%d then due else cast(?%d as bigint) end from feed
			where host = ?1 and %s = %d and due is not null order by due limit 1) as at`, i+1, i+2, i+2, rankColumn, i+1)
	}
	return `update host set (calm, ready) = (select min(case when rank <= 2 then at end), min(at) from (` +
		strings.Join(firsts, ` union all `) + `) firsts) where name = ?1`
}()

// readyWhen sets when hosts can be polled next, by their rows, their pauses and their first feeds. It is
// called by each transaction that lets a feed be due earlier, and the host is locked.
func readyWhen(tx Tx, hosts ...*hostRow) {
	now := tx.Now()
	for _, h := range hosts {
		args := []any{h.name}
		for r := RankOperator; int(r) <= ranks; r++ {
			at := max(h.free, now)
			if p := h.paused(r, now); p != nil {
				at = max(at, p.until)
			}
			args = append(args, int64(at))
		}
		tx.Exec(setReady, args...)
	}
}
