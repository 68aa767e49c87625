// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/feedpollard/pollard/figures"
)

// changed are figures that a transaction has read, with what is to become of them.
type changed struct {
	values map[figures.Ref][]byte // nil: there is none
	dirty  map[figures.Ref]bool
}

func (c changed) Get(r figures.Ref) ([]byte, error) { return c.values[r], nil }

func (c changed) Put(r figures.Ref, value []byte) error {
	c.values[r], c.dirty[r] = value, true
	return nil
}

func (c changed) Delete(r figures.Ref) error { return c.Put(r, nil) }

// changeFigures makes a change to the figures that are named. Figures merge here and
// not in the server: nodes come to that one after the other, which takes milliseconds
// of each minute.
func (s *Store) changeFigures(ctx context.Context, refs []figures.Ref, do func(figures.Pairs) error) error {
	return s.call(ctx, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			// A node that falls asleep in here must not keep the others waiting.
			_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(hashtext('pollard.figures')),
				set_config('idle_in_transaction_session_timeout', $1, true)`, callTimeout.String())
			if err != nil {
				return err
			}
			c := changed{make(map[figures.Ref][]byte), make(map[figures.Ref]bool)}
			if err := c.read(ctx, tx, refs); err != nil {
				return err
			}
			if err := do(c); err != nil {
				return err
			}
			return c.write(ctx, tx)
		})
	})
}

func columns(refs []figures.Ref) (kinds []int16, keys [][]byte) {
	for _, r := range refs {
		kinds, keys = append(kinds, int16(r.Kind)), append(keys, []byte(r.Key))
	}
	return kinds, keys
}

func (c changed) read(ctx context.Context, tx pgx.Tx, refs []figures.Ref) error {
	kinds, keys := columns(refs)
	rows, err := tx.Query(ctx, `select f.kind, f.key, f.value from pollard.figures f
		join (select distinct * from unnest($1::smallint[], $2::bytea[])) as w (kind, key) using (kind, key)`, kinds, keys)
	if err != nil {
		return err
	}
	var (
		kind       int16
		key, value []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&kind, &key, &value}, func() error {
		c.values[figures.Ref{Kind: figures.Kind(kind), Key: string(key)}] = slices.Clone(value)
		return nil
	})
	return err
}

func (c changed) write(ctx context.Context, tx pgx.Tx) error {
	var put, remove []figures.Ref
	var values [][]byte
	for r := range c.dirty {
		if v := c.values[r]; v != nil {
			put, values = append(put, r), append(values, v)
		} else {
			remove = append(remove, r)
		}
	}
	kinds, keys := columns(put)
	_, err := tx.Exec(ctx, `insert into pollard.figures (kind, key, value) select * from unnest($1::smallint[], $2::bytea[], $3::bytea[])
		on conflict (kind, key) do update set value = excluded.value`, kinds, keys, values)
	if err != nil || len(remove) == 0 {
		return err
	}
	kinds, keys = columns(remove)
	_, err = tx.Exec(ctx, `delete from pollard.figures f using unnest($1::smallint[], $2::bytea[]) as w (kind, key)
		where f.kind = w.kind and f.key = w.key`, kinds, keys)
	return err
}

// AddFigures implements [figures.Store].
func (s *Store) AddFigures(ctx context.Context, b *figures.Batch) error {
	return s.changeFigures(ctx, b.Refs(), b.Apply)
}

// FigureSeed implements [figures.Store].
func (s *Store) FigureSeed(ctx context.Context) (seed uint64, err error) {
	err = s.changeFigures(ctx, []figures.Ref{figures.SeedRef}, func(p figures.Pairs) (err error) {
		seed, err = figures.Seed(p)
		return err
	})
	return seed, err
}

// Figures implements [figures.Store].
func (s *Store) Figures(ctx context.Context, kind figures.Kind, prefix string) (found []figures.Figure, err error) {
	const page = 4096
	from, end := []byte(prefix), behind(prefix)
	for {
		var values []stored
		err := s.call(ctx, func(ctx context.Context) error {
			rows, err := s.pool.Query(ctx, `select key, value from pollard.figures
				where kind = $1 and key >= $2 and ($3::bytea is null or key < $3) order by key limit $4`, int16(kind), from, end, page)
			if err != nil {
				return err
			}
			values, err = pgx.CollectRows(rows, pgx.RowToStructByPos[stored])
			return err
		})
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if f, err := figures.Decode(figures.Ref{Kind: kind, Key: string(v.Key)}, v.Value); err == nil {
				found = append(found, f)
			}
		}
		if len(values) < page {
			return found, nil
		}
		from = append(values[page-1].Key, 0) // the next key that there can be
	}
}

type stored struct{ Key, Value []byte }

// behind is the first key behind all that begin with a prefix, nil if there is none.
func behind(prefix string) []byte {
	end := []byte(prefix)
	for len(end) > 0 {
		if end[len(end)-1]++; end[len(end)-1] != 0 {
			return end
		}
		end = end[:len(end)-1]
	}
	return nil
}

// Interface guard.
var _ figures.Store = (*Store)(nil)
