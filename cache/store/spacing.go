// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// The hosts of a registrable domain are often one server. So the polls of a domain are spaced as well:
// some at once, and then so many a second. Feeds that have no version, those of rank 5 and redirects to
// another host are rarer, because anyone can invent names below a domain. A poll that comes too early
// reserves the next moment, and is claimed again then.
const (
	// keepMoment is for how long after a reserved moment it may be used: the host may be busy.
	keepMoment = time.Minute
	// maxReserved is how far ahead a moment may be. One that is later is damage.
	maxReserved = 24 * time.Hour
)

// spaced is a request that the spacing of a domain counts.
type spaced struct {
	feed *feedRow // that has the moment
	host Host
	by   rate
}

// rate is how requests to a domain are spaced, and the column of its row that counts them.
type rate struct {
	column, wait string // wait is another column that they have to wait for as well
	atOnce       int
	every        time.Duration
}

var (
	knownRate  = rate{"free", "free", 32, time.Second / 8}
	otherRate  = rate{"free_new", "free_new", 8, time.Second}
	publicRate = rate{"free_public", "free_new", 8, time.Second} // public networks use what is left
)

// spaced returns a poll of the feed, or a redirect to it, as one that is counted.
func (f *feedRow) spaced(host Host, r Rank, redirect bool) spaced {
	switch {
	case f.version != 0 && r != RankPublicNew && !redirect:
		return spaced{f, host, knownRate}
	case r < RankPublic:
		return spaced{f, host, otherRate}
	}
	return spaced{f, host, publicRate}
}

// takeMoment counts a request to a domain, and returns when there would be no other.
const takeMoment = `update host set {own} = ?3 + (
	select max(at) from (select cast(?2 as bigint) as at union all select host.{own} union all select host.{wait}) rows where at < ?4)
	where name = ?1 returning {own}`

// space reserves moments for requests that the spacing of their domains does not let through: then their
// feeds have a moment that is later than now.
func space(tx Tx, now Time, all ...spaced) error {
	all = slices.DeleteFunc(all, func(s spaced) bool {
		reserved := s.feed.moment > now.Add(-keepMoment) && s.feed.moment < now.Add(maxReserved)
		return reserved || s.host.Name == "" || s.host.Domain == "" || s.host.Spacing <= 0
	})
	slices.SortStableFunc(all, func(a, b spaced) int { return cmp.Compare(a.host.Domain, b.host.Domain) })
	for _, s := range all { // in order, after hosts and feeds
		tx.Exec(hostIfAbsent, rowOfDomain(s.host), "")
		tx.Lock(lockHost, rowOfDomain(s.host))
	}
	for _, by := range []rate{knownRate, otherRate, publicRate} {
		some := slices.DeleteFunc(slices.Clone(all), func(s spaced) bool { return s.by != by })
		sql := strings.NewReplacer("{own}", by.column, "{wait}", by.wait).Replace(takeMoment)
		err := tx.Query(sql, each(some, func(s spaced) []any {
			return []any{rowOfDomain(s.host), int64(now), int64(by.every), int64(now.Add(maxReserved))}
		}), func(i int, row Row) error {
			err := row.Scan((*int64)(&some[i].feed.moment))
			some[i].feed.moment = some[i].feed.moment.Add(-time.Duration(by.atOnce) * by.every)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// rowOfDomain returns the name of the row that counts requests to the domain of a host.
func rowOfDomain(h Host) string { return "domain " + h.Domain }
