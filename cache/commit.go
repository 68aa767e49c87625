// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// complete commits an outcome, and publishes the state that it leads to. Readers see it after it was
// committed.
func (f *Feed) complete(ctx context.Context, s, next *state, v classified, lease *store.Lease, o store.Outcome) {
	c := f.cache
	if next.feed.Alias != "" && !o.Returned {
		if err := c.createTarget(ctx, f, next.feed.Alias, o.In); err != nil {
			next.feed.Alias = s.feed.Alias // the next poll finds out again
		} else {
			o.In = aliasInterval
			next.override(c, aliasInterval, policy.HintMoved)
		}
	}
	if o.Withdraw && s.version != 0 {
		f.withdraw(s.version) // at once: the store may be away
	}
	request := f.requestOf(next, v)
	if err := f.commit(ctx, s, next, lease, o); err != nil {
		f.commitFailed(ctx, s, next, v, err)
		return
	}
	f.publish(next)
	if request != nil {
		c.askHub(f, *request, v.answer.Private)
	}
	if v.body != nil {
		c.memory.add(f.id, next, next.feed.Version.stored(), v.body.Data)
	}
	f.report(s, next, v)
}

// commit makes an outcome durable in one transaction: decision, validators and, if there is
// a new version, the body that they describe.
func (f *Feed) commit(ctx context.Context, s, next *state, lease *store.Lease, o store.Outcome) error {
	var err error
	o.ID, o.Token, o.Claimed = f.id, lease.Token, lease.Hold
	if o.State == "" {
		o.State, o.Host, o.Hold = next.stored(f.configured()), lease.Host, lease.Hold
	}
	if o.Facts, err = next.encodePollState(); err != nil {
		return fmt.Errorf("encoding the state of a poll: %w", err)
	}
	if o.Memo, err = next.encodeFeedState(); err != nil {
		return err
	}
	next.size = s.size + 2*int64(max(0, len(o.Memo)-len(lease.Memo))+max(0, len(o.Facts)-len(lease.Facts)))
	f.committing(lease.Token)
	// The origin has answered, so the outcome is stored even while the cache closes.
	err = f.cache.store.Commit(context.WithoutCancel(ctx), o)
	for wait := time.Second; err != nil && !o.Returned && !errors.Is(err, store.ErrFenced) && wait < commitTimeout; wait *= 2 {
		f.cache.storeFailed(err)
		if !sleep(ctx, wait) {
			break
		}
		if err = f.cache.store.Commit(context.WithoutCancel(ctx), o); err == nil {
			f.cache.storeAnswered()
		}
	}
	if err != nil {
		f.notCommitted()
		return err
	}
	if o.In < dueSoon {
		f.cache.wake(f.cache.changed)
	}
	if o.Body != nil {
		f.cache.bodyStored(int64(len(o.Body.Data)))
	}
	return nil
}

// commitFailed deals with an outcome that could not be committed. All of it is dropped: the
// claim stands, and the stored version, its validators and its schedule still belong
// together. A pause that is longer than the claim is kept in memory.
func (f *Feed) commitFailed(ctx context.Context, s, completed *state, v classified, err error) {
	if errors.Is(err, store.ErrFenced) {
		_ = f.reload(context.WithoutCancel(ctx)) // if it fails, the next claim brings the record
		f.reportFenced(v, err)
		return
	}
	f.cache.storeFailed(err)
	next := *s
	if s.version == f.missing.Load() {
		f.dropVersion(&next)
	}
	next.last.At, next.last.Status = completed.last.At, v.answer.Status
	next.last.Result, next.last.Failure, next.last.Error = status.ResultFailed, policy.FailureStore, oneLine(err)
	// The store may have written the version although it failed: its number is not used again.
	next.feed.Version.Number = completed.feed.Version.Number
	next.override(f.cache, max(s.due, completed.due)-f.cache.elapsed(), policy.HintStore)
	next.deferredUntil = next.due
	v.answer.Failure, v.answer.Err, v.result = policy.FailureStore, err, status.ResultFailed
	f.publish(&next)
	f.report(s, &next, v)
}

// committed reports whether a change is this node's own commit, whose outcome it knows. The
// token of the feed's state is not enough: a node that has seen another's claim has it too.
func (f *Feed) committed(token store.Token) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token == 0 || token != f.token {
		return false
	}
	f.announced = true
	return true
}

// committing says that changes with a token are from now on this node's own.
func (f *Feed) committing(token store.Token) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token, f.announced = token, false
}

// notCommitted says that they are not: the commit has failed. The store may have written it
// all the same; then the record is read again.
func (f *Feed) notCommitted() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.announced {
		f.outdated.Store(true)
	}
	f.token, f.announced = 0, false
}
