// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/feedpollard/pollard/cache/store"
)

// Claim asks for the right to poll named feeds. If there are so many that it takes several
// statements and one fails, what the others have granted is not used.
func (s *Store) Claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	leases := make([]store.Lease, 0, len(claims))
	for part := range slices.Chunk(claims, batch) {
		granted, err := s.claim(ctx, part)
		if err != nil {
			return nil, err
		}
		leases = append(leases, granted...)
	}
	return leases, nil
}

func (s *Store) claim(ctx context.Context, claims []store.Claim) ([]store.Lease, error) {
	leave, err := s.forPoll(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var (
		n          = len(claims)
		ids        = make([]pgtype.UUID, n)
		urls       = make([]string, n)
		holds      = make([]pgtype.Interval, n)
		floors     = make([]pgtype.Interval, n)
		configured = make([]bool, n)
		hosts      = make([]string, n)
		domains    = make([]string, n)
		spacings   = make([]pgtype.Interval, n)
	)
	for i, c := range claims {
		ids[i], urls[i], configured[i] = uuid(c.ID), text(c.URL), c.Configured
		holds[i], floors[i] = interval(c.Hold), interval(c.Floor)
		hosts[i], domains[i], spacings[i] = text(c.Host.Name), text(c.Host.Domain), interval(c.Host.Spacing)
	}
	rows, err := s.query(ctx, `select `+leaseColumns+` from pollard.claim($2, $3, $4, $5, $6, $7, $8, $9, $1) l`,
		ids, urls, holds, floors, configured, hosts, domains, spacings)
	if err != nil {
		return nil, err
	}
	leases := make([]store.Lease, len(rows))
	for i, r := range rows {
		leases[i] = r.lease()
	}
	return leases, nil
}

// maxWait bounds the wait after which a node asks again: meanwhile another
// node may have stopped whose feeds are due, or made a feed due.
const maxWait = time.Minute

// ClaimDue grants feeds that are due.
func (s *Store) ClaimDue(ctx context.Context, q store.DueQuery) (leases []store.Lease, wait time.Duration, err error) {
	leave, err := s.forPoll(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	except := make([]string, 0, len(q.Except))
	for _, host := range q.Except {
		if host != "" {
			except = append(except, text(host))
		}
	}
	var idle pgtype.Interval // null: no feed is idle
	if q.Idle > 0 {
		idle = interval(q.Idle)
	}
	rows, err := s.query(ctx, `select `+leaseColumns+` from pollard.claim_due($2, $3, $4, $1) l`,
		min(q.Limit, batch), except, idle)
	if err != nil {
		return nil, 0, err
	}
	for _, r := range rows {
		if r.n == 0 { // the last row, which is no lease
			return leases, min(duration(r.wait), maxWait), nil
		}
		leases = append(leases, r.lease())
	}
	return leases, 0, nil
}

// Hop asks for the right to follow a redirect.
func (s *Store) Hop(ctx context.Context, h store.Hop) (store.Passage, error) {
	leave, err := s.forPoll(ctx)
	if err != nil {
		return store.Passage{}, err
	}
	defer leave()
	var (
		denied string
		wait   pgtype.Interval
	)
	err = s.row(ctx, []any{&denied, &wait}, `select denied, wait from pollard.hop($1, $2, $3, $4, $5, $6)`,
		uuid(h.ID), interval(h.Floor), h.Yield, text(h.Host.Name), text(h.Host.Domain), interval(h.Host.Spacing))
	if err != nil {
		return store.Passage{}, err
	}
	return store.Passage{Denied: store.Denial(denied), Wait: duration(wait)}, nil
}
