// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"
)

// feedRow is a row of the table feed.
type feedRow struct {
	n        int64 // 0 if it is not stored yet
	id       ID
	url      string
	hasURL   bool // without one, it is what is remembered of a feed, or of a URL to which a redirect led
	earlier  bool // an earlier version of the tables wrote it: site is the host of its URL
	token    Token
	next     Time // the decision; End if there is none
	poke     Time // it is wanted then, whatever the decision is; End if it is not
	last     Time // grant
	asked    Time // a reader did last; Never if none has
	first    Time // a reader asked for it at its own address; Never if only redirects have led to it
	earliest Time // its origin asked not to be polled before
	refused  Time // a poll was refused last
	until    Time // it is deleted then if it has no URL

	owner           Owner
	askers          []asker
	configuredUntil Time // a node has it in its configuration until then; Never if none has

	version   int64
	size      int64
	coding    string
	body      int64
	changed   Time
	news      int64
	outcome   Token
	state     State
	site      string
	points    string // URL to which it redirects permanently; empty if it does not
	pollState []byte
	feedState []byte

	stored []any // its columns as they were when it was locked; nil if they are not known
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
		if !f.hasURL {
			return nil
		}
		return f.url
	}, func(f *feedRow, v any) { f.url, f.hasURL = v.(string) }},
	{written, func(f *feedRow) any { return 3 * number(!f.earlier) }, func(f *feedRow, v any) { f.earlier = v != int64(3) }},
	textColumn("site", func(f *feedRow) *string { return &f.site }), // of a row of version 2 that is not paced: 'feed <id>'
	{"owner", func(f *feedRow) any { return int64(f.owner) }, func(f *feedRow, v any) {
		n, _ := v.(int64)
		f.owner = Owner(n).ofNow()
	}},
	{"owners", func(f *feedRow) any { return encodeAskers(f.askers) }, func(f *feedRow, v any) {
		if b, ok := v.([]byte); ok { // otherwise they are those of version 2 of the tables
			f.askers = decodeAskers(b)
		}
	}},
	textColumn("state", func(f *feedRow) *State { return &f.state }),
	timeColumn("configured_until", Never, func(f *feedRow) *Time { return &f.configuredUntil }),
	numberColumn("token", func(f *feedRow) *Token { return &f.token }),
	timeColumn("next", End, func(f *feedRow) *Time { return &f.next }),
	timeColumn("wanted", End, func(f *feedRow) *Time { return &f.poke }),
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
		columns, save = `select f.n, f.id, f.askers, f.poll_state, f.feed_state`, `update feed set poll_state = coalesce(?2, poll_state), feed_state = coalesce(?3, feed_state)`
		for i, c := range feedColumns {
			columns += ", f." + c.name
			save += fmt.Sprintf(", %s = ?%d", c.name, i+4)
		}
		return columns, save + ` where n = ?1`
	}()

	feedToWrite = selectFeed + ` from feed f where id = ?1 for update`
	feedWithURL = selectFeed + ` from feed f where id = ?1 and url is not null`
	feedsAfter  = selectFeed + ` from feed f where id > ?1 and url is not null order by id limit ?2 offset ?3`

	forgottenAfter = selectFeed + ` from feed f where id > ?1 and url is null order by id limit ?2 offset ?3`
)

var feedIfAbsent = `insert into feed (id, until, ` + written + `) values (?1, 0, 3) on conflict (id) do nothing`

// scanFeed reads a row of [selectFeed], and of columns that follow.
func scanFeed(row Row, more ...any) (f feedRow, err error) {
	var id, askers []byte
	values := make([]any, len(feedColumns))
	into := append(make([]any, 0, 5+len(values)+len(more)), &f.n, &id, &askers, &f.pollState, &f.feedState)
	for i := range values {
		into = append(into, &values[i])
	}
	f.first = Never
	err = row.Scan(append(into, more...)...)
	f.askers = decodeAskers(askers)
	for i, c := range feedColumns {
		c.set(&f, values[i])
	}
	copy(f.id[:], id)
	f.pollState, f.feedState = bytes.Clone(f.pollState), bytes.Clone(f.feedState)
	return f, err
}

// newFeed returns the row of a feed of which nothing is known.
func newFeed(id ID) feedRow {
	return feedRow{id: id, next: End, poke: End, last: Never, asked: Never, first: Never, earliest: Never, refused: Never, until: Never, configuredUntil: Never, state: StateCold}
}

// Text returns a string as each database can keep it: without zero bytes, and in UTF-8.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// save writes the row if it has changed. The states are written if they are given, and must be those of the row.
func (f *feedRow) save(tx Tx, pollState, feedState []byte) {
	columns := f.columns()
	if pollState == nil && feedState == nil && reflect.DeepEqual(columns, f.stored) {
		return
	}
	tx.Exec(saveFeed, append([]any{f.n, bytesOrNull(pollState), bytesOrNull(feedState)}, columns...)...)
}

// columns returns the values of [feedColumns].
func (f *feedRow) columns() []any {
	values := make([]any, len(feedColumns))
	for i, c := range feedColumns {
		values[i] = c.get(f)
	}
	return values
}

// longestNext is how far ahead a decision may be. A later one counts as that.
const longestNext = 31 * 24 * time.Hour

// damaged reports whether the row cannot be what was written: its ID is not that of its URL, or a moment is later
// than it may be.
func (f *feedRow) damaged(now Time) bool {
	if f.hasURL && f.id != IDOf(f.url) {
		return true
	}
	for _, m := range []struct {
		moment Time
		ahead  time.Duration
	}{
		{f.last, damageDelay}, {f.asked, 0}, {f.first, 0}, {f.refused, 0}, {f.earliest, maxPause}, {f.configuredUntil, configuredFor}, {f.poke, longestNext},
	} {
		if m.moment != End && m.moment > now.Add(m.ahead+odd) {
			return true
		}
	}
	return f.next != End && f.next > now.Add(longestNext+damageDelay+odd) && !f.earlier // which had no such bound
}

// restart makes a damaged row that of a feed that was polled at this moment and forgotten: of when
// it was really polled, nothing is known. Feeds that were damaged together are not due together.
func (f *feedRow) restart(now Time, id ID) {
	n := f.n
	*f = newFeed(id)
	f.n, f.last, f.until, f.changed = n, now.Add(time.Duration(id[0])*damageDelay/256), now.Add(maxPause), now
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
	next, poke := f.next, f.pokeAt()
	if !f.hasURL && next == End { // nothing is remembered of a decision
		next = now
	}
	r := Record{
		ID: f.id, URL: f.url, Token: f.token, In: min(next, poke).Sub(now), Poked: poke < next || poke <= now,
		Polled: f.last.ago(now), Asked: f.asked.ago(now), First: f.first.ago(now), NotBefore: max(0, f.earliest.Sub(now)),
		Version: uint64(f.version), State: f.state, Site: f.site, Points: f.points, Owner: f.owner,
		Configured: f.configured(now), Renew: f.configured(now) && f.configuredUntil <= now.Add(configuredFor/2),
		PollState: f.pollState, FeedState: f.feedState,
	}
	for _, a := range f.askers {
		if a.counts(now.day()) {
			r.Askers = append(r.Askers, Asker{a.owner, now.day() - a.day})
		}
	}
	return r
}

// pokeAt returns when a poke has the feed polled; [End] if there is none.
func (f *feedRow) pokeAt() Time {
	if f.poke == End {
		return End
	}
	return max(f.poke, f.earliest)
}

// used returns when a reader last asked for the feed, or else when it was polled last.
func (f *feedRow) used() Time {
	if f.asked == Never {
		return f.last
	}
	return f.asked
}

// Nodes may have different configurations, and only a node that has a feed in its own says so. So a feed is
// configured for a time, which such a node renews.
const configuredFor = 48 * time.Hour

func (f *feedRow) configured(now Time) bool { return f.configuredUntil > now }

// configure records that a node has the feed in its configuration, once a day.
func (f *feedRow) configure(now Time) {
	if f.configuredUntil <= now.Add(configuredFor/2) {
		f.configuredUntil = now.Add(configuredFor)
	}
}

// lockFeeds locks the rows of feeds. Those that are missing are left out, and those that are
// damaged start afresh.
func lockFeeds(tx Tx, ids []ID) (map[ID]*feedRow, error) {
	rows := make(map[ID]*feedRow, len(ids))
	ids = sortedIDs(ids)
	// One statement locks and reads: between two, another node could add a row, which would be read and not locked.
	err := tx.Query(feedToWrite, each(ids, idArgument), func(i int, row Row) error {
		f, err := scanFeed(row)
		f.stored = f.columns()
		rows[ids[i]] = &f
		return err
	})
	now := tx.Now()
	for id, f := range rows {
		if f.id != id || f.damaged(now) {
			f.restart(now, id)
			tx.Exec(`update feed set id = ?2 where n = ?1`, f.n, id[:])
			f.save(tx, []byte{}, []byte{})
			tx.Changed(Change{ID: id, Forgotten: true})
			tx.Log().Error("the record of a feed is damaged: the feed starts afresh, after an interval", zap.String("id", hex.EncodeToString(id[:])))
		}
	}
	return rows, err
}

// lockAll locks sites and then feeds. It adds feeds that are missing if they are among added.
func lockAll(tx Tx, names []string, added, others []ID) (map[string]*siteRow, map[ID]*feedRow, error) {
	sites, err := lockSites(tx, names...)
	if err != nil {
		return nil, nil, err
	}
	for range 2 { // another node may remove a row before it is locked
		for _, id := range sortedIDs(added) {
			tx.Exec(feedIfAbsent, id[:])
		}
		feeds, err := lockFeeds(tx, slices.Concat(added, others))
		missing := slices.ContainsFunc(added, func(id ID) bool { return feeds[id] == nil })
		if err != nil || !missing {
			return sites, feeds, err
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
