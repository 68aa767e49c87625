// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"fmt"

	"github.com/feedpollard/pollard/cache"
)

// Reserve claims the next poll of each feed. Of several claims of one feed in a
// call, only the first can be granted.
func (s *Store) Reserve(ctx context.Context, claims []cache.Claim) ([]cache.Grant, error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	defer s.leave()
	if len(claims) == 0 {
		return nil, nil
	}

	now := claims[0].Now
	for _, c := range claims {
		if c.Now.After(now) {
			now = c.Now
		}
	}
	var grants []cache.Grant
	err := s.records.do(ctx, now, func(b buckets) (wrote bool, err error) {
		grants, wrote, err = b.reserve(claims)
		return wrote, err
	})
	if err != nil {
		return nil, fmt.Errorf("reserving polls of %d feeds: %w", len(claims), err)
	}
	return grants, nil
}

// reserve answers claims and writes what it grants.
func (b buckets) reserve(claims []cache.Claim) (grants []cache.Grant, wrote bool, err error) {
	// Nothing is written before every record has been read: a damaged one refuses
	// these claims without undoing the transaction of other callers.
	records := make([]poll, len(claims))
	known := make([]bool, len(claims))
	for i, c := range claims {
		if records[i], known[i], err = b.loadPoll(c.ID); err != nil {
			return nil, false, fmt.Errorf("feed %s: %w", name(c.ID), err)
		}
	}
	grants = make([]cache.Grant, len(claims))
	first := make(map[cache.ID]int, len(claims))
	for i, c := range claims {
		if j, again := first[c.ID]; again {
			grants[i].Schedule = grants[j].Schedule
			continue
		}
		first[c.ID] = i
		p := records[i]
		if p.token != c.Token {
			if known[i] {
				grants[i].Schedule = p.schedule()
			}
			continue
		}
		p.token++
		p.next = millis(c.Next)
		if err := b.poll.Put(c.ID[:], encodePoll(p)); err != nil {
			return nil, true, err
		}
		if !known[i] {
			if err := b.meta.Put(c.ID[:], encodeMeta(c.URL, nil)); err != nil {
				return nil, true, err
			}
		}
		wrote = true
		grants[i] = cache.Grant{OK: true, Schedule: p.schedule()}
	}
	return grants, wrote, nil
}
