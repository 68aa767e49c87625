// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// leaseColumns are those of l, which has the type pollard.lease, in the order of scanRow.
const leaseColumns = `l.n, l.denied, l.wait, l.why, l.now, l.id, l.url, l.token, l.next, l.hold, l.polled, l.asked,
	l.version, l.state, l.facts, l.memo, l.host, l.domain, l.spacing, l.configured`

// row is a row of the type pollard.lease.
type row struct {
	n             int64
	denied        string
	wait          pgtype.Interval
	why           string
	now           pgtype.Timestamptz
	id            pgtype.UUID
	url           pgtype.Text
	token         pgtype.Int8
	next          pgtype.Timestamptz
	hold          pgtype.Interval
	polled, asked pgtype.Timestamptz
	version       pgtype.Int8
	state         pgtype.Text
	facts, memo   []byte
	host, domain  pgtype.Text
	spacing       pgtype.Interval
	configured    pgtype.Bool
}

// query runs a statement that returns rows of the type pollard.lease. Its first
// parameter says whether to leave out the memos. A memo that is damaged costs that feed
// its memo and not all feeds their polls.
func (s *Store) query(ctx context.Context, sql string, args ...any) (rows []row, err error) {
	run := func(bare bool) error {
		return s.call(ctx, func(ctx context.Context) error {
			result, err := s.pool.Query(ctx, sql, append([]any{bare}, args...)...)
			if err != nil {
				return err
			}
			rows, err = pgx.CollectRows(result, scanRow)
			return err
		})
	}
	err = run(false)
	if !isDamage(err) {
		return rows, err
	}
	if err := run(true); err != nil {
		return nil, err
	}
	for i := range rows {
		err := s.row(ctx, []any{&rows[i].memo}, `select memo from pollard.memos where id = $1`, rows[i].id)
		if isDamage(err) {
			s.log.Error("the memo of a feed is damaged in the database: it is polled as if it were new", zap.String("url", feedurl.Redact(rows[i].url.String)), zap.Error(err))
		}
	}
	return rows, nil
}

func scanRow(r pgx.CollectableRow) (v row, err error) {
	err = r.Scan(&v.n, &v.denied, &v.wait, &v.why, &v.now, &v.id, &v.url, &v.token, &v.next, &v.hold, &v.polled, &v.asked,
		&v.version, &v.state, &v.facts, &v.memo, &v.host, &v.domain, &v.spacing, &v.configured)
	return v, err
}

func (v row) lease() store.Lease {
	return store.Lease{Record: v.record(), Denied: store.Denial(v.denied), Wait: duration(v.wait), Why: v.why}
}

func (v row) record() store.Record {
	return store.Record{
		ID:         v.id.Bytes,
		URL:        v.url.String,
		Token:      store.Token(v.token.Int64),
		In:         until(v.next, v.now),
		Hold:       duration(v.hold),
		Polled:     since(v.polled, v.now),
		Asked:      since(v.asked, v.now),
		Version:    uint64(v.version.Int64),
		State:      store.State(v.state.String),
		Facts:      v.facts,
		Memo:       v.memo,
		Host:       store.Host{Name: v.host.String, Domain: v.domain.String, Spacing: duration(v.spacing)},
		Configured: v.configured.Bool,
	}
}

// until returns the time to a moment, [cache.Ended] if it never comes.
func until(t, now pgtype.Timestamptz) time.Duration {
	switch {
	case t.InfinityModifier == pgtype.NegativeInfinity:
		return 0
	case !t.Valid || t.InfinityModifier == pgtype.Infinity:
		return store.Ended
	}
	return t.Time.Sub(now.Time)
}

// since returns the time since a moment, -1 if there was none.
func since(t, now pgtype.Timestamptz) time.Duration {
	if !t.Valid || t.InfinityModifier != pgtype.Finite {
		return -1
	}
	return max(now.Time.Sub(t.Time), 0)
}

// interval is a duration for the database, in microseconds rounded up, so that no poll
// comes earlier than it may.
func interval(d time.Duration) pgtype.Interval {
	us := d / time.Microsecond
	if d%time.Microsecond > 0 {
		us++
	}
	return pgtype.Interval{Microseconds: int64(us), Valid: true}
}

// wait is the time to a next poll for the database: null if there is none.
func wait(d time.Duration) pgtype.Interval {
	if d == store.Ended {
		return pgtype.Interval{}
	}
	return interval(d)
}

// ago is the time since an event for the database: null if it never happened.
func ago(d time.Duration) pgtype.Interval {
	if d < 0 {
		return pgtype.Interval{}
	}
	return interval(d)
}

// duration returns an interval of the database, [cache.Ended] if it is null.
func duration(i pgtype.Interval) time.Duration {
	if !i.Valid {
		return store.Ended
	}
	return time.Duration(i.Microseconds)*time.Microsecond + time.Duration(i.Days)*24*time.Hour
}

// text is a string as the database can keep it: it takes neither zero bytes nor what
// is not UTF-8.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

func uuids(ids []store.ID) []pgtype.UUID {
	list := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		list[i] = uuid(id)
	}
	return list
}

func uuid(id store.ID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: true} }
