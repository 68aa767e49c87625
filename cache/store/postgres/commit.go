// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/feedpollard/pollard/cache/store"
)

// castagnoli is the table of the sums by which damage of a body is noticed. Few servers
// keep sums of their pages.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Commit stores the outcome of a claimed poll.
func (s *Store) Commit(ctx context.Context, o store.Outcome) error {
	if o.Body != nil && o.Body.Version == 0 {
		return errors.New("store postgres: a body needs a version")
	}
	leave, err := s.forPoll(ctx)
	if err != nil {
		return err
	}
	defer leave()
	var (
		n       = len(o.Pauses)
		scopes  = make([]string, n)
		lengths = make([]pgtype.Interval, n)
		whys    = make([]string, n)
		steps   = make([]int32, n)
		valid   bool
	)
	for i, p := range o.Pauses {
		scopes[i], lengths[i], whys[i] = text(p.Scope), interval(p.For), text(p.Why)
		steps[i] = int32(min(p.Step, math.MaxInt32))
	}
	body := newBody(o.Body)
	err = s.row(ctx, []any{&valid},
		`select pollard.commit($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`,
		uuid(o.ID), int64(o.Token), wait(max(o.In, 0)), interval(o.Hold), text(string(o.State)), o.Facts, o.Memo,
		o.Withdraw, body.version, body.coding, body.sum, body.data,
		text(o.Host.Name), text(o.Host.Domain), interval(o.Host.Spacing), scopes, lengths, whys, steps)
	if err == nil && !valid {
		err = store.ErrFenced
	}
	return err
}

// body is a body for the database; without data: none.
type body struct {
	version int64
	coding  string
	sum     int64
	data    []byte
}

func newBody(b *store.Body) body {
	if b == nil {
		return body{}
	}
	data := b.Data
	if data == nil {
		data = []byte{} // nil is null
	}
	return body{int64(b.Version), text(b.Coding), int64(crc32.Checksum(data, castagnoli)), data}
}

// Body reads the body of a version, or of the one that has taken its place meanwhile.
func (s *Store) Body(ctx context.Context, id store.ID, _ uint64) (*store.StoredBody, error) {
	var (
		b           store.Body
		stored, sum int64
	)
	err := s.row(ctx, []any{&stored, &b.Coding, &sum, &b.Data}, `select version, coding, sum, data from pollard.bodies where id = $1`, uuid(id))
	b.Version = uint64(stored)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, store.ErrNoBody
	case isDamage(err):
		return nil, fmt.Errorf("%w: %w", store.ErrNoBody, err)
	case err != nil:
		return nil, err
	case sum != int64(crc32.Checksum(b.Data, castagnoli)):
		return nil, fmt.Errorf("%w: its sum is wrong", store.ErrNoBody)
	}
	return store.NewStoredBody(b), nil
}

// Restore writes records of an import, one transaction for some of them. Each
// transaction takes them in the order of their IDs, as claims do.
func (s *Store) Restore(ctx context.Context, saved []store.Saved) error {
	const atOnce = 4 << 20 // bytes of bodies
	saved = slices.Clone(saved)
	slices.SortStableFunc(saved, func(a, b store.Saved) int { return a.ID.Compare(b.ID) })
	for len(saved) > 0 {
		n, size := 0, 0
		for n < min(len(saved), batch) && size < atOnce {
			if b := saved[n].Body; b != nil {
				size += len(b.Data)
			}
			n++
		}
		err := s.call(ctx, func(ctx context.Context) error {
			var b pgx.Batch
			for _, r := range saved[:n] {
				queueRestore(&b, r)
			}
			return s.pool.SendBatch(ctx, &b).Close()
		})
		if err != nil {
			return err
		}
		saved = saved[n:]
	}
	return nil
}

func queueRestore(b *pgx.Batch, r store.Saved) {
	body := newBody(r.Body)
	b.Queue(`select pollard.restore($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)`,
		uuid(r.ID), text(r.URL), wait(r.In), interval(r.Hold), ago(r.Polled), ago(r.Asked), text(string(r.State)), r.Facts, r.Memo,
		body.version, body.coding, body.sum, body.data,
		text(r.Host.Name), text(r.Host.Domain), interval(r.Host.Spacing), r.Configured, r.New)
}
