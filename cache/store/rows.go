// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// feedRow is a row of the table feed.
type feedRow struct {
	n        int64 // 0: not stored yet
	id       ID
	url      string
	known    bool // it has a URL; without one, only last, earliest and until are of use
	damaged  bool // its ID is not that of its URL: nothing but n may be of use
	mended   bool // moments that cannot be were ignored
	earlier  bool // an earlier version of the tables wrote it: host is that of its URL, and no site
	token    Token
	next     Time
	place    Time // among the feeds of its host; End: it has none
	hold     time.Duration
	last     Time
	asked    Time
	first    Time // a reader asked for it at its own address; Never: only redirects have led to it
	earliest Time // its origin asked not to be polled before
	refused  Time // a poll was refused last
	until    Time // it is deleted then if it has no URL

	established bool
	owner       Owner
	askers      []asker
	seen        int64
	days        int64

	version    int64
	size       int64
	coding     string
	body       int64
	changed    Time
	news       int64
	outcome    Token
	state      State
	configured bool
	host       Host
	points     string // URL to which it redirects permanently; empty if it does not
	pollState  []byte
	feedState  []byte

	configuredUntil Time // a node has it in its configuration until then; Never: not known
}

// feedColumn is a column of the table feed.
type feedColumn struct {
	name string
	get  func(*feedRow) any
	set  func(*feedRow, any) // to a value as the database returns it; one of another type, which is damage, counts as null or zero
}

// feedColumns are the columns that each change of a row writes.
var feedColumns = []feedColumn{
	{"url", func(f *feedRow) any {
		if !f.known {
			return nil
		}
		return f.url
	}, func(f *feedRow, v any) { f.url, f.known = v.(string) }},
	{"tables_3", func(f *feedRow) any { return 3 * number(!f.earlier) }, func(f *feedRow, v any) { f.earlier = v != int64(3) }}, // see [versions]
	{"site", func(f *feedRow) any { return f.row() }, func(f *feedRow, v any) {
		name, _ := v.(string)
		f.host.Site = nameOf(name)
	}},
	numberColumn("spacing", func(f *feedRow) *time.Duration { return &f.host.Spacing }),
	{"not_established", func(f *feedRow) any { return number(!f.established) }, func(f *feedRow, v any) { f.established = v == int64(0) }},
	numberColumn("owner", func(f *feedRow) *Owner { return &f.owner }),
	{"askers", func(f *feedRow) any { return bytesOrNull(encodeAskers(f.askers)) }, func(f *feedRow, v any) {
		b, _ := v.([]byte)
		f.askers = decodeAskers(b)
	}},
	numberColumn("seen", func(f *feedRow) *int64 { return &f.seen }),
	numberColumn("days", func(f *feedRow) *int64 { return &f.days }),
	textColumn("state", func(f *feedRow) *State { return &f.state }),
	{"configured", func(f *feedRow) any { return number(f.configured) }, func(f *feedRow, v any) { f.configured = v == int64(1) }},
	timeColumn("configured_until", Never, func(f *feedRow) *Time { return &f.configuredUntil }),
	numberColumn("token", func(f *feedRow) *Token { return &f.token }),
	timeColumn("next", End, func(f *feedRow) *Time { return &f.next }),
	numberColumn("hold", func(f *feedRow) *time.Duration { return &f.hold }),
	timeColumn("last", Never, func(f *feedRow) *Time { return &f.last }),
	timeColumn("earliest", Never, func(f *feedRow) *Time { return &f.earliest }),
	timeColumn("until", Never, func(f *feedRow) *Time { return &f.until }),
	timeColumn("asked", Never, func(f *feedRow) *Time { return &f.asked }),
	{"first", func(f *feedRow) any { return int64(max(f.first, 0)) }, func(f *feedRow, v any) {
		switch n, known := v.(int64); {
		case !known: // a row of version 2 of the tables: targets of redirects had none
			f.first = f.asked
		case n > 0:
			f.first = Time(n)
		}
	}},
	timeColumn("refused", Never, func(f *feedRow) *Time { return &f.refused }),
	textColumn("points", func(f *feedRow) *string { return &f.points }),
	numberColumn("version", func(f *feedRow) *int64 { return &f.version }),
	{"taken", func(f *feedRow) any { return f.taken() }, func(*feedRow, any) {}},
	numberColumn("size", func(f *feedRow) *int64 { return &f.size }),
	textColumn("coding", func(f *feedRow) *string { return &f.coding }),
	numberColumn("body", func(f *feedRow) *int64 { return &f.body }),
	numberColumn("changed", func(f *feedRow) *Time { return &f.changed }),
	numberColumn("news", func(f *feedRow) *int64 { return &f.news }),
	numberColumn("outcome", func(f *feedRow) *Token { return &f.outcome }),
}

func numberColumn[T ~int64 | ~uint64](name string, field func(*feedRow) *T) feedColumn {
	return feedColumn{name, func(f *feedRow) any { return int64(*field(f)) }, func(f *feedRow, v any) {
		n, _ := v.(int64)
		*field(f) = T(n)
	}}
}

func textColumn[T ~string](name string, field func(*feedRow) *T) feedColumn {
	return feedColumn{name, func(f *feedRow) any { return string(*field(f)) }, func(f *feedRow, v any) {
		s, _ := v.(string)
		*field(f) = T(s)
	}}
}

// timeColumn is a column of a moment that is null if it is null.
func timeColumn(name string, null Time, field func(*feedRow) *Time) feedColumn {
	return feedColumn{name, func(f *feedRow) any { return field(f).column() }, func(f *feedRow, v any) {
		n, ok := v.(int64)
		if *field(f) = Time(n); !ok {
			*field(f) = null
		}
	}}
}

var (
	selectFeed, saveFeed = func() (columns, save string) {
		columns, save = `select f.n, f.id, f.due, f.poll_state, f.feed_state`, `update feed set due = ?2, poll_state = coalesce(?3, poll_state), feed_state = coalesce(?4, feed_state)`
		for i, c := range feedColumns {
			columns += ", f." + c.name
			save += fmt.Sprintf(", %s = ?%d", c.name, i+5)
		}
		return columns, save + ` where n = ?1`
	}()

	feedByID    = selectFeed + ` from feed f where id = ?1`
	feedIfKnown = selectFeed + ` from feed f where id = ?1 and url is not null`
	feedsAfter  = selectFeed + ` from feed f where id > ?1 and url is not null order by id limit ?2 offset ?3`

	forgottenAfter = selectFeed + ` from feed f where id > ?1 and url is null order by id limit ?2 offset ?3`
)

const (
	lockFeed     = `select n from feed where id = ?1`
	feedIfAbsent = `insert into feed (id, until, tables_3) values (?1, 0, 3) on conflict (id) do nothing`
)

// scanFeed reads a row of [selectFeed], and of columns that follow.
func scanFeed(row Row, more ...any) (f feedRow, err error) {
	var id []byte
	var place sql.NullInt64
	values := make([]any, len(feedColumns))
	into := append(make([]any, 0, 5+len(values)+len(more)), &f.n, &id, &place, &f.pollState, &f.feedState)
	for i := range values {
		into = append(into, &values[i])
	}
	f.first = Never
	err = row.Scan(append(into, more...)...)
	for i, c := range feedColumns {
		c.set(&f, values[i])
	}
	copy(f.id[:], id)
	f.place = timeOf(place, End)
	f.pollState, f.feedState = bytes.Clone(f.pollState), bytes.Clone(f.feedState)
	f.damaged = f.known && f.id != IDOf(f.url)
	return f, err
}

// newFeed returns the row of a feed of which nothing is known.
func newFeed(id ID) feedRow {
	return feedRow{id: id, next: End, place: End, last: Never, asked: Never, first: Never, earliest: Never, refused: Never, until: Never, configuredUntil: Never, state: StateCold}
}

// Text returns a string as each database can keep it: without zero bytes, and in UTF-8.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// save writes the row, with its place among the feeds of its host. The states are written if they
// are given, and must be those of the row.
func (f *feedRow) save(tx Tx, place any, pollState, feedState []byte) {
	args := []any{f.n, place, bytesOrNull(pollState), bytesOrNull(feedState)}
	for _, c := range feedColumns {
		args = append(args, c.get(f))
	}
	tx.Exec(saveFeed, args...)
}

// restart makes a damaged row that of a feed that was polled at this moment and forgotten: of when
// it was really polled, nothing is known. Feeds that were damaged together are not due together.
func (f *feedRow) restart(tx Tx, id ID) {
	now, n := tx.Now(), f.n
	*f = newFeed(id)
	f.n, f.last, f.until, f.changed = n, now.Add(time.Duration(id[0])*damageDelay/256), now.Add(maxPause), now
	tx.Exec(`update feed set id = ?2 where n = ?1`, n, id[:])
	f.save(tx, nil, []byte{}, []byte{})
	tx.Changed(Change{ID: id, Forgotten: true})
	tx.Log().Error("the record of a feed is damaged: the feed starts afresh, after an interval", zap.String("id", hex.EncodeToString(id[:])))
}

// mend replaces moments that cannot be, as a bit of the row was flipped: the feed is polled a week
// late at most.
func (f *feedRow) mend(now Time) {
	latest := now.Add(max(maxPause, f.hold)).Add(longestJitter + longestSkip)
	for _, m := range []struct {
		moment       *Time
		latest, then Time
	}{
		{&f.last, now.Add(odd), now}, {&f.asked, now.Add(odd), now}, {&f.first, now.Add(odd), now}, {&f.refused, now.Add(odd), now}, {&f.earliest, now.Add(maxPause + odd), Never},
		{&f.configuredUntil, now.Add(configuredFor + odd), now},
		{&f.next, latest, now}, {&f.place, max(f.next, now.Add(sleep)).Add(odd), f.next},
	} {
		if *m.moment > m.latest && *m.moment != End {
			*m.moment, f.mended = m.then, true
		}
	}
	if f.hold < 0 {
		f.hold, f.mended = 0, true
	}
}

// damageDelay is the time in which feeds become due that were damaged together.
const damageDelay = 15 * time.Minute

func timeOf(column sql.NullInt64, null Time) Time {
	if !column.Valid {
		return null
	}
	return Time(column.Int64)
}

// record returns the feed as the engine sees it.
func (f *feedRow) record(now Time) Record {
	in := f.next
	if !f.known {
		in = f.until
	}
	return Record{
		ID: f.id, URL: f.url, Token: f.token, In: in.Sub(now), Hold: f.hold,
		Polled: f.last.ago(now), Asked: f.asked.ago(now), NotBefore: max(0, f.earliest.Sub(now)),
		Version: uint64(f.version), State: f.state, Host: f.host, Points: f.points, Configured: f.configured, Rank: f.rank(), Owner: f.owner,
		PollState: f.pollState, FeedState: f.feedState,
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

// wanted returns when a reader last asked for the feed, or else when it was polled last.
func (f *feedRow) wanted() Time {
	if f.asked == Never {
		return f.last
	}
	return f.asked
}

// lockFeeds locks the rows of feeds. Those that are missing are left out, and those that are
// damaged start afresh.
func lockFeeds(tx Tx, ids []ID) (map[ID]*feedRow, error) {
	rows := make(map[ID]*feedRow, len(ids))
	ids = sortedIDs(ids)
	for _, id := range ids {
		tx.Lock(lockFeed, id[:])
	}
	var damaged []ID
	err := tx.Query(feedByID, each(ids, idArgument), func(i int, row Row) error {
		f, err := scanFeed(row)
		if f.id != ids[i] || f.damaged {
			damaged = append(damaged, ids[i])
		}
		rows[ids[i]] = &f
		return err
	})
	for _, id := range damaged {
		rows[id].restart(tx, id)
	}
	now := tx.Now()
	for _, f := range rows {
		f.mend(now)
	}
	return rows, err
}

// lockAll locks hosts and then feeds, of which it adds the first that are missing, so many.
func lockAll(tx Tx, names []string, added int, ids ...ID) (map[string]*hostRow, map[ID]*feedRow, error) {
	hosts, err := lockHosts(tx, names...)
	if err != nil {
		return nil, nil, err
	}
	for range 2 { // another node may remove a row before it is locked
		for _, id := range sortedIDs(ids[:added]) {
			tx.Exec(feedIfAbsent, id[:])
		}
		feeds, err := lockFeeds(tx, ids)
		missing := slices.ContainsFunc(ids[:added], func(id ID) bool { return feeds[id] == nil })
		if err != nil || !missing {
			return hosts, feeds, err
		}
	}
	return nil, nil, errors.New("rows of feeds disappear")
}

func sortedIDs(ids []ID) []ID {
	sorted := slices.Clone(ids)
	slices.SortFunc(sorted, ID.Compare)
	return slices.Compact(sorted)
}

func idArgument(id ID) []any { return []any{id[:]} }

// number returns a flag as a column keeps it.
func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// taken returns what the row takes with its body, in bytes.
func (f *feedRow) taken() int64 {
	const others = 512 // of its columns, and of indexes
	return others + f.size + int64(len(f.url)+len(f.points)+len(f.pollState)+len(f.feedState))
}

// bytesOrNull returns nil as null.
func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
