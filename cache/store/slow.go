// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"time"
)

// slowDay is for how long refusals count, and slowApart how far apart two are at least: those that come together are
// of polls that were in flight together.
const (
	slowDay   = 24 * time.Hour
	slowApart = 10 * time.Minute
)

// SlowSite is a site whose pace does not fit its feeds.
type SlowSite struct {
	Site    string
	Feeds   int64
	Round   time.Duration // how long one poll of each feed takes, one spacing after the other
	Refuses bool          // it refused more than one poll of the last day, and answered others well
}

const slowSites = `select f.site, count(*), cast(sum(f.spacing) as bigint), count(case when f.refused >= ?1 then 1 end),
	min(case when f.refused >= ?1 then f.refused end), max(f.refused), max(h.good) from feed f left join host h on h.name = f.site
	where f.url is not null and f.spacing > 0 group by f.site having sum(f.spacing) > ?2 or count(case when f.refused >= ?1 then 1 end) > 1
	order by 3 desc, 1 limit 20`

// Slow implements [Store].
func (d *Database) Slow(ctx context.Context, longest time.Duration) ([]SlowSite, error) {
	return read(ctx, d, func(tx Tx) (list []SlowSite, err error) {
		since := tx.Now().Add(-slowDay)
		err = tx.Query(slowSites, one(int64(since), int64(longest)), func(_ int, row Row) error {
			var (
				s                 SlowSite
				round, refused    int64
				first, last, good sql.NullInt64
			)
			err := row.Scan(&s.Site, &s.Feeds, &round, &refused, &first, &last, &good)
			s.Round = time.Duration(round)
			s.Refuses = refused > 1 && Time(last.Int64)-Time(first.Int64) >= Time(slowApart) && timeOf(good, Never) > since
			if s.Round > longest || s.Refuses {
				list = append(list, s)
			}
			return err
		})
		return list, err
	})
}
