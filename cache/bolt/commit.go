// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// Commit stores the outcome of a reserved poll. A new body goes to the slot that
// the record does not name, and is durable there before the record names it.
func (s *Store) Commit(ctx context.Context, o cache.Outcome) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()

	err := s.commit(ctx, o)
	if err != nil {
		return fmt.Errorf("committing a poll of feed %s: %w", name(o.ID), err)
	}
	return nil
}

func (s *Store) commit(ctx context.Context, o cache.Outcome) error {
	if o.Body == nil {
		return s.settle(ctx, o, 0)
	}
	if o.Body.Version == 0 {
		return errors.New("version 0 stands for no body")
	}
	// While the feed is held, no other commit or Forget changes its slots.
	release, err := s.feeds.hold(ctx, o.ID)
	if err != nil {
		return err
	}
	defer release()

	p, known, err := s.poll(o.ID)
	if err != nil {
		return err
	}
	if !known || p.token != o.Token {
		return cache.ErrFenced
	}
	slot := otherSlot(p.slot)
	if err := s.bodies.write(o.ID, slot, *o.Body); err != nil {
		return err
	}
	return s.settle(ctx, o, slot)
}

// settle is the transaction of a commit. slot is where the new body is; 0: there
// is none, and the record goes on naming the old one.
func (s *Store) settle(ctx context.Context, o cache.Outcome, slot byte) error {
	return s.records.do(ctx, o.Now, func(b buckets) (wrote bool, err error) {
		p, known, err := b.loadPoll(o.ID)
		if err != nil {
			return false, err
		}
		if !known || p.token != o.Token {
			return false, cache.ErrFenced
		}
		url, _, err := decodeMeta(b.meta.Get(o.ID[:]))
		if err != nil {
			return false, err
		}
		meta := encodeMeta(string(url), o.Memo)
		p.next = millis(o.Next)
		if slot != 0 {
			p.slot, p.version = slot, o.Body.Version
		}
		if err := b.poll.Put(o.ID[:], encodePoll(p)); err != nil {
			return true, err
		}
		return true, b.meta.Put(o.ID[:], meta)
	})
}

// Forget removes records, then their bodies. A crash in between leaves body files
// that nothing names; forgetting the feed again removes them.
func (s *Store) Forget(ctx context.Context, ids []cache.ID) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.leave()
	if len(ids) == 0 {
		return nil
	}

	release, err := s.feeds.hold(ctx, ids...)
	if err != nil {
		return err
	}
	defer release()
	err = s.records.do(ctx, time.Time{}, func(b buckets) (wrote bool, err error) {
		for _, id := range ids {
			if b.poll.Get(id[:]) == nil && b.meta.Get(id[:]) == nil {
				continue
			}
			if err := b.poll.Delete(id[:]); err != nil {
				return true, err
			}
			if err := b.meta.Delete(id[:]); err != nil {
				return true, err
			}
			wrote = true
		}
		return wrote, nil
	})
	if err != nil {
		return fmt.Errorf("forgetting %d feeds: %w", len(ids), err)
	}
	for _, id := range ids {
		if err := s.bodies.remove(id); err != nil {
			return fmt.Errorf("forgetting feed %s: %w", name(id), err)
		}
	}
	return nil
}
