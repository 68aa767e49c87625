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
)

// hostRow is a row of the table host, with the pauses that hold for it. It has no sum: a moment
// that it cannot have is ignored, so damage of it, or of a pause, is that of one spacing or pause.
// If a name is damaged, all rows are made again: see [remakeHosts].
type hostRow struct {
	name, domain string
	free         Time
	ready        Time
	turn         int64      // the class of feeds that is polled next, if one is due
	served       [2]Owner   // whose feed was polled last, by class
	good         Time       // it last answered well; [Never]: never, or it has answered 429 since
	pauses       [2]pauseOf // of the host and of its domain
}

type pauseOf struct {
	until Time
	why   string
}

const hostColumns = `h.name, h.domain, h.free, h.ready, h.turn, h.served, h.other, h.good, p.until, p.why, q.until, q.why from host h
	left join pause p on p.scope = 'host ' || h.name`

const (
	hostIfAbsent = `insert into host (name, domain) values (?1, ?2) on conflict (name) do nothing`
	hostByName   = `select ` + hostColumns + ` left join pause q on q.scope = 'domain ' || coalesce(?2, h.domain) where h.name = ?1`
	lockHost     = `select name from host where name = ?1`
	hostsReady   = `select name from host where ready <= ?1 and ready >= ?3 order by ready limit ?2 for update skip locked`
	hostsCalm    = `select name from host where ready <= ?1 and ready >= ?3 and calm <= ?1 order by ready limit ?2 for update skip locked`
	firstReady   = `select ready from host where ready >= ?1 order by ready limit 1`
)

// odd is how far ahead a moment may be of the latest that it can be: clocks may go back a little.
const odd = time.Minute

// scanHost reads the row of a host with a name.
func scanHost(name string, row Row) (h *hostRow, err error) {
	h = new(hostRow)
	var (
		free   int64
		ready  sql.NullInt64
		good   sql.NullInt64
		served [2]int64
		until  [2]sql.NullInt64
		why    [2]sql.NullString
	)
	err = row.Scan(&h.name, &h.domain, &free, &ready, &h.turn, &served[0], &served[1], &good, &until[0], &why[0], &until[1], &why[1])
	h.name, h.turn = name, h.turn&1
	h.free, h.ready, h.served = Time(free), timeOf(ready, End), [2]Owner{Owner(served[0]), Owner(served[1])}
	h.good = timeOf(good, Never)
	for i := range h.pauses {
		h.pauses[i] = pauseOf{timeOf(until[i], Never), why[i].String}
	}
	return h, err
}

// deny reports whether the host must not be asked now, and until when.
func (h *hostRow) deny(now, since Time, spacing time.Duration) (denied Refusal, until Time, why string) {
	until = now
	free := h.free
	if free > now.Add(spacing+odd) { // or the spacing has been shortened
		free = now
	}
	if nameOf(h.name) != "" && spacing > 0 {
		free = max(free, since.Add(spacing))
	}
	if free > until {
		denied, until = DeniedBusy, free
	}
	for i, p := range h.pauses {
		if i == 1 && h.good.Add(exemptFor) > now && h.good <= now.Add(odd) {
			break
		}
		if p.until > now && p.until <= now.Add(maxPause+odd) {
			if until < p.until || why == "" {
				why = p.why
			}
			denied, until = DeniedPaused, max(until, p.until)
		}
	}
	return denied, until, why
}

// start records a request to the host, for a feed of a class and owner. The next turn is the
// other class's, and in this class the next owner's.
func (h *hostRow) start(tx Tx, now Time, host Host, class int64, owner Owner) {
	h.free, h.turn, h.served[class] = now.Add(host.Spacing), 1-class, owner
	tx.Exec(`update host set domain = ?2, free = ?3, turn = ?4, served = ?5, other = ?6 where name = ?1`,
		h.name, host.Domain, int64(h.free), h.turn, int64(h.served[0]), int64(h.served[1]))
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
			func(i int, row Row) (err error) {
				rows[names[i]], err = scanHost(names[i], row)
				return err
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

// readyFrom is when a host can be polled for its first feed of a class. That is never
// before the moment at which it is set, so claims do not have to look at what is left of
// older values: see [Database.oldest].
const readyFrom = `(select case when f.due > host.free and f.due > ?2 then f.due when host.free > ?2 then host.free else cast(?2 as bigint) end
		from feed f where f.host = host.name and f.not_established = %d and f.due is not null order by f.due limit 1) as at limit 1`

var setReady = fmt.Sprintf(`update host set (calm, ready) = (
	select established.at, case when established.at is null or other.at < established.at then other.at else established.at end
	from (select `+readyFrom+`) established, (select `+readyFrom+`) other) where name = ?1`, 0, 1)

// readyWhen sets when hosts can be polled next, by their rows and their first feed. It is
// called by each transaction that lets a feed be due earlier, and the host is locked.
func readyWhen(tx Tx, hosts ...string) {
	for _, name := range hosts {
		tx.Exec(setReady, name, int64(tx.Now()))
	}
}
