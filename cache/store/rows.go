// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// feedRow is a row of the table feed.
type feedRow struct {
	n        int64 // 0: not stored yet
	id       ID
	url      string
	known    bool // it has a URL; without one, only last, hopped and earliest are of use
	token    Token
	next     Time
	place    Time // among the feeds of its host; End: it has none
	hold     time.Duration
	last     Time
	hopped   Time
	asked    Time
	earliest Time // its origin asked not to be polled before

	established bool
	owner       Owner
	askers      []asker
	seen        int64
	days        int

	version    int64
	size       int64
	coding     string
	body       int64
	state      State
	configured bool
	host       Host
	facts      []byte
	memo       []byte
}

const (
	feedColumns = `n, id, url, token, next, hold, last, hopped, asked, version, size, coding, body, state, configured, host, domain, spacing,
		class, owner, askers, seen, due, earliest, facts, memo`

	feedByID    = `select ` + feedColumns + ` from feed where id = ?1`
	lockFeed    = `select n from feed where id = ?1`
	feedIfKnown = `select ` + feedColumns + ` from feed where id = ?1 and url is not null`
	feedsAfter  = `select ` + feedColumns + ` from feed where id > ?1 and url is not null order by id limit ?2`
	firstDue    = `select ` + feedColumns + ` from feed where host = ?1 and class = ?2 and due <= ?3 order by due limit 2 for update skip locked`
	nextOwner   = `select ` + feedColumns + ` from feed where host = ?1 and class = ?2 and owner > ?3 and due is not null
		order by owner, due limit 1 for update skip locked`
	hostIfAbsent = `insert into host (name, domain) values (?1, ?2) on conflict (name) do nothing`
	feedIfAbsent = `insert into feed (id, until) values (?1, 0) on conflict (id) do nothing`
)

func scanFeed(row Row) (f feedRow, err error) {
	var (
		id                               []byte
		url                              sql.NullString
		next, last, hopped, asked        sql.NullInt64
		place, earliest                  sql.NullInt64
		token, hold, configured, spacing int64
		class, owner                     int64
		state, host                      string
		askers                           []byte
	)
	err = row.Scan(&f.n, &id, &url, &token, &next, &hold, &last, &hopped, &asked, &f.version, &f.size, &f.coding, &f.body,
		&state, &configured, &host, &f.host.Domain, &spacing,
		&class, &owner, &askers, &f.seen, &place, &earliest, &f.facts, &f.memo)
	copy(f.id[:], id)
	f.url, f.known = url.String, url.Valid
	f.token, f.hold, f.state, f.configured = Token(token), time.Duration(hold), State(state), configured != 0
	f.next, f.last, f.hopped, f.asked = moment(next, End), moment(last, Never), moment(hopped, Never), moment(asked, Never)
	f.established, f.owner, f.askers = class == 0, Owner(owner), decodeAskers(askers)
	f.place, f.earliest = moment(place, End), moment(earliest, Never)
	f.host.Name, f.host.Spacing = nameOf(host), time.Duration(spacing)
	f.facts, f.memo = bytes.Clone(f.facts), bytes.Clone(f.memo)
	return f, err
}

func moment(column sql.NullInt64, null Time) Time {
	if !column.Valid {
		return null
	}
	return Time(column.Int64)
}

// unpaced begins the name of a host row of one feed: [Host] without a name is not paced.
const unpaced = "feed "

// row returns the name of the host row that a feed waits for.
func (f *feedRow) row() string { return hostRowOf(f.id, f.host) }

func hostRowOf(id ID, host Host) string {
	if host.Name == "" {
		return unpaced + hex.EncodeToString(id[:])
	}
	return host.Name
}

func nameOf(row string) string {
	if strings.HasPrefix(row, unpaced) {
		return ""
	}
	return row
}

// record returns the feed as the engine sees it.
func (f *feedRow) record(now Time) Record {
	return Record{
		ID: f.id, URL: f.url, Token: f.token, In: f.next.Sub(now), Hold: f.hold,
		Polled: f.last.ago(now), Asked: f.asked.ago(now), Hopped: f.hopped.ago(now), NotBefore: max(0, f.earliest.Sub(now)),
		Version: uint64(f.version), State: f.state, Host: f.host, Configured: f.configured, Established: f.established,
		Facts: f.facts, Memo: f.memo,
	}
}

// due returns the place of the feed among those of its host. A feed that has no version and is
// not configured has none, unless a reader waits for it.
func (f *feedRow) due() any {
	switch {
	case !f.known:
		return nil
	case f.waits():
		return int64(f.place)
	case f.version == 0 && !f.configured:
		return nil
	}
	return f.next.column()
}

// ahead is how far before the present the place of a feed is for which a reader waits.
const ahead = 1 << 62

// waits reports whether a reader waits for the feed.
func (f *feedRow) waits() bool { return f.place < 0 }

// class returns 0 for an established feed, and 1 for others.
func (f *feedRow) class() int64 { return number(!f.established) }

// wanted returns when a reader last asked for the feed, or else when it was polled last.
func (f *feedRow) wanted() Time {
	if f.asked == Never {
		return f.last
	}
	return f.asked
}

// hostRow is a row of the table host, with the pauses that hold for it.
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
	hostByName = `select ` + hostColumns + ` left join pause q on ?2 <> '' and q.scope = 'domain ' || ?2 where h.name = ?1`
	lockHost   = `select name from host where name = ?1`
	hostsReady = `select name, domain from host where ready <= ?1 and ready >= ?3 order by ready limit ?2 for update skip locked`
	hostsCalm  = `select name, domain from host where calm <= ?1 and calm >= ?3 order by calm limit ?2 for update skip locked`
	firstReady = `select ready from host where ready >= ?1 order by ready limit 1`
)

func scanHost(row Row) (h hostRow, err error) {
	var (
		free   int64
		ready  sql.NullInt64
		good   sql.NullInt64
		served [2]int64
		until  [2]sql.NullInt64
		why    [2]sql.NullString
	)
	err = row.Scan(&h.name, &h.domain, &free, &ready, &h.turn, &served[0], &served[1], &good, &until[0], &why[0], &until[1], &why[1])
	h.free, h.ready, h.served = Time(free), moment(ready, End), [2]Owner{Owner(served[0]), Owner(served[1])}
	h.good = moment(good, Never)
	for i := range h.pauses {
		h.pauses[i] = pauseOf{moment(until[i], Never), why[i].String}
	}
	return h, err
}

// deny reports whether the host must not be asked now, and until when.
func (h *hostRow) deny(now, since Time, spacing time.Duration) (denied Denial, until Time, why string) {
	until = now
	free := h.free
	if nameOf(h.name) != "" && spacing > 0 {
		free = max(free, since.Add(spacing))
	}
	if free > until {
		denied, until = DeniedBusy, free
	}
	for i, p := range h.pauses {
		if i == 1 && h.good.Add(exemption) > now {
			break
		}
		if p.until > now {
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
func (h *hostRow) start(tx Tx, now Time, spacing time.Duration, class int64, owner Owner) {
	h.free, h.turn, h.served[class] = now.Add(spacing), 1-class, owner
	tx.Exec(`update host set free = ?2, turn = ?3, served = ?4, other = ?5 where name = ?1`,
		h.name, int64(h.free), h.turn, int64(h.served[0]), int64(h.served[1]))
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
			func(_ int, row Row) error {
				h, err := scanHost(row)
				rows[h.name] = &h
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

// lockFeeds locks the rows of feeds. Those that are missing are left out.
func lockFeeds(tx Tx, ids []ID) (map[ID]*feedRow, error) {
	rows := make(map[ID]*feedRow, len(ids))
	ids = sortedIDs(ids)
	for _, id := range ids {
		tx.Lock(lockFeed, id[:])
	}
	err := tx.Query(feedByID, each(ids, idArgument), func(_ int, row Row) error {
		f, err := scanFeed(row)
		rows[f.id] = &f
		return err
	})
	return rows, err
}

// addFeeds adds rows for feeds that have none, and locks them.
func addFeeds(tx Tx, rows map[ID]*feedRow, ids []ID) error {
	var missing []ID
	for _, id := range sortedIDs(ids) {
		if rows[id] == nil {
			missing = append(missing, id)
			tx.Exec(feedIfAbsent, id[:])
		}
	}
	if len(missing) == 0 {
		return nil
	}
	added, err := lockFeeds(tx, missing)
	maps.Copy(rows, added)
	if err == nil && len(added) < len(missing) {
		err = errors.New("rows of feeds disappear")
	}
	return err
}

func sortedIDs(ids []ID) []ID {
	sorted := slices.Clone(ids)
	slices.SortFunc(sorted, ID.Compare)
	return slices.Compact(sorted)
}

func idArgument(id ID) []any { return []any{id[:]} }

// readyFrom is when a host can be polled for its first feed of a class. That is never
// before the moment at which it is set, so claims do not have to look at what is left of
// older values: see [Database.oldest].
const readyFrom = `(select case when f.due > host.free and f.due > ?2 then f.due when host.free > ?2 then host.free else cast(?2 as bigint) end
		from feed f where f.host = host.name and f.class = %d and f.due is not null order by f.due limit 1) as at limit 1`

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

// number returns a flag as a column keeps it.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// bytesOrNull returns nil as null.
func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
