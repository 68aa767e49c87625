// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.uber.org/zap"
)

// feedRow is a row of the table feed.
type feedRow struct {
	n        int64 // 0: not stored yet
	id       ID
	url      string
	known    bool // it has a URL; without one, only last, hopped, earliest and until are of use
	damaged  bool // it is not as it was written: nothing but n may be of use
	token    Token
	next     Time
	place    Time // among the feeds of its host; End: it has none
	hold     time.Duration
	last     Time
	hopped   Time
	asked    Time
	earliest Time // its origin asked not to be polled before
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
	facts      []byte
	memo       []byte
}

const (
	feedColumns = `f.n, f.id, f.url, f.host, f.domain, f.spacing, f.class, f.owner, f.askers, f.seen, f.days, f.state, f.configured, f.token,
		f.next, f.due, f.hold, f.last, f.hopped, f.earliest, f.until, f.asked, f.version, f.size, f.coding, f.body, f.changed, f.news, f.outcome,
		f.sum, f.facts, f.memo`

	feedByID    = `select ` + feedColumns + ` from feed f where id = ?1`
	lockFeed    = `select n from feed where id = ?1`
	feedIfKnown = `select ` + feedColumns + ` from feed f where id = ?1 and url is not null`
	feedsAfter  = `select ` + feedColumns + ` from feed f where id > ?1 and url is not null order by id limit ?2 offset ?3`
	firstDue    = `select ` + feedColumns + ` from feed f where host = ?1 and class = ?2 and due <= ?3 order by due limit 2 for update skip locked`
	nextOwner   = `select ` + feedColumns + ` from feed f where host = ?1 and class = ?2 and due <= ?3 and owner = (
			select coalesce(min(case when owner > ?4 then owner end), min(owner))
			from (select owner from feed where host = ?1 and class = ?2 and due <= ?3 order by due limit 10000) longest)
		order by due limit 1 for update skip locked`
	feedIfAbsent = `insert into feed (id, until, sum) values (?1, 0, ?2) on conflict (id) do nothing`
	saveFeed     = `update feed set due = ?2, sum = ?3, facts = coalesce(?4, facts), memo = coalesce(?5, memo), domain = ?6, spacing = ?7, askers = ?8,
		seen = ?9, days = ?10, state = ?11, configured = ?12, token = ?13, next = ?14, hold = ?15, last = ?16, hopped = ?17, earliest = ?18,
		asked = ?19, version = ?20, coding = ?21, body = ?22, changed = ?23, news = ?24, outcome = ?25, url = ?26, host = ?27, class = ?28,
		owner = ?29, size = ?30, until = ?31 where n = ?1`
)

// scanFeed reads a row of [feedColumns], and of columns that follow.
func scanFeed(row Row, more ...any) (f feedRow, err error) {
	var (
		id, askers                            []byte
		url                                   sql.NullString
		host, state                           string
		class, owner, configured, token, hold int64
		spacing, changed, outcome, sum        int64
		next, place, last, hopped             sql.NullInt64
		earliest, until, asked                sql.NullInt64
	)
	err = row.Scan(append([]any{&f.n, &id, &url, &host, &f.host.Domain, &spacing, &class, &owner, &askers, &f.seen, &f.days, &state, &configured, &token,
		&next, &place, &hold, &last, &hopped, &earliest, &until, &asked, &f.version, &f.size, &f.coding, &f.body, &changed, &f.news, &outcome,
		&sum, &f.facts, &f.memo}, more...)...)
	copy(f.id[:], id)
	f.url, f.known = url.String, url.Valid
	f.token, f.hold, f.state, f.configured = Token(token), time.Duration(hold), State(state), configured != 0
	f.next, f.last, f.hopped, f.asked = timeOf(next, End), timeOf(last, Never), timeOf(hopped, Never), timeOf(asked, Never)
	f.established, f.owner, f.askers = class == 0, Owner(owner), decodeAskers(askers)
	f.place, f.earliest, f.until = timeOf(place, End), timeOf(earliest, Never), timeOf(until, Never)
	f.changed, f.outcome = Time(changed), Token(outcome)
	f.host.Name, f.host.Spacing = nameOf(host), time.Duration(spacing)
	f.facts, f.memo = bytes.Clone(f.facts), bytes.Clone(f.memo)
	f.damaged = sum != f.sum() || class != f.class() || configured != number(f.configured) || f.known && host != f.row()
	return f, err
}

// newFeed returns the row of a feed of which nothing is known.
func newFeed(id ID) feedRow {
	return feedRow{id: id, next: End, place: End, last: Never, hopped: Never, asked: Never, earliest: Never, until: Never, state: StateCold}
}

// columns returns what a row has in the columns of [saveFeed] after its memo.
func (f *feedRow) columns() []any {
	var url any
	if f.known {
		url = f.url
	}
	return []any{f.host.Domain, int64(f.host.Spacing), bytesOrNull(encodeAskers(f.askers)), f.seen, f.days, string(f.state),
		number(f.configured), int64(f.token), f.next.column(), int64(f.hold), f.last.column(), f.hopped.column(), f.earliest.column(),
		f.asked.column(), f.version, f.coding, f.body, int64(f.changed), f.news, int64(f.outcome),
		url, f.row(), f.class(), int64(f.owner), f.size, f.until.column()}
}

// sum returns the sum by which a row that is damaged is noticed. Its place does not count, as a
// feed is polled only if it is due as well.
func (f *feedRow) sum() int64 {
	b := bytes.Clone(f.id[:])
	for _, v := range append(f.columns(), f.facts, f.memo) {
		switch v := v.(type) {
		case nil:
			b = append(b, 0)
		case int64:
			b = binary.LittleEndian.AppendUint64(append(b, 1), uint64(v))
		case string:
			v = Text(v)
			b = append(binary.AppendUvarint(append(b, 2), uint64(len(v))), v...)
		case []byte:
			b = append(binary.AppendUvarint(append(b, 3), uint64(len(v))), v...)
		}
	}
	return int64(xxhash.Sum64(b))
}

// Text returns a string as each database can keep it: without zero bytes, and in UTF-8.
func Text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// save writes the row, with its place among the feeds of its host. Facts and memo are written
// if they are given, and must be those of the row.
func (f *feedRow) save(tx Tx, place any, facts, memo []byte) {
	args := append([]any{f.n, place, f.sum(), bytesOrNull(facts), bytesOrNull(memo)}, f.columns()...)
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
	return rows, err
}

// addFeeds adds rows for feeds that have none, and locks them.
func addFeeds(tx Tx, rows map[ID]*feedRow, ids []ID) error {
	var missing []ID
	for _, id := range sortedIDs(ids) {
		if rows[id] == nil {
			missing = append(missing, id)
			f := newFeed(id)
			f.until = 0
			tx.Exec(feedIfAbsent, id[:], f.sum())
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

// lockAll locks hosts and then feeds, and adds those that are missing.
func lockAll(tx Tx, domains map[string]string, ids []ID) (map[string]*hostRow, map[ID]*feedRow, error) {
	hosts, err := lockHosts(tx, domains)
	if err != nil {
		return nil, nil, err
	}
	feeds, err := lockFeeds(tx, ids)
	if err == nil {
		err = addFeeds(tx, feeds, ids)
	}
	return hosts, feeds, err
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

// bytesOrNull returns nil as null.
func bytesOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
