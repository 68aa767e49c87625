// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// complete commits an outcome, and publishes the state that it leads to. Readers see it after it was
// committed.
func (f *Feed) complete(ctx context.Context, s, next *feedstate.State, v feedstate.Classified, lease *store.Lease, o store.Outcome) {
	c := f.cache
	if o.Withdraw && s.Version != 0 { // at once: the store may be away
		f.withdraw(f.state.Load().Version)
		f.missing.Store(s.Version)
	}
	requests := f.requestsOf(next, v)
	err := f.commit(ctx, next, lease, o, !v.Answer.Unsent())
	if err != nil && !errors.Is(err, store.ErrShort) {
		f.commitFailed(ctx, s, next, v, err)
		return
	}
	coding := next.Feed.Version.StoredCoding()
	switch {
	case err == nil:
		f.unstored.Store(0)
		next.KeepUnstored(nil)
	case v.Body != nil:
		next.KeepUnstored(next.Feed.Version.Represent(coding, inParts(v.Body.Data)...))
	}
	if v.Body != nil && err == nil {
		c.memory.add(f.id, next, coding, v.Body.Data)
	}
	f.publish(next)
	c.askHubs(f, requests, v.Answer.Private)
	f.report(s, next, v)
}

// commit makes an outcome durable in one transaction: decision, validators and, if there is
// a new version, the body that they describe. It tries again only if a request was sent to the origin. It returns
// [store.ErrShort] if all but the body was stored.
func (f *Feed) commit(ctx context.Context, next *feedstate.State, lease *store.Lease, o store.Outcome, sent bool) error {
	var err error
	o.ID, o.Token, o.Claimed = f.id, lease.Token, lease.In
	if o.PollState, err = next.EncodePollState(); err != nil {
		return fmt.Errorf("encoding the state of a poll: %w", err)
	}
	if o.FeedState, err = next.EncodeFeedState(); err != nil {
		return err
	}
	o.Points = &next.Points
	next.Size += 2 * int64(max(0, len(o.FeedState)-len(lease.FeedState))+max(0, len(o.PollState)-len(lease.PollState)))
	f.commits.begin(lease.Token)
	// The origin has answered, so the outcome is stored even while the cache closes.
	err = f.cache.store.Commit(context.WithoutCancel(ctx), o)
	done := func() bool { return err == nil || errors.Is(err, store.ErrShort) }
	for wait := time.Second; !done() && sent && !errors.Is(err, store.ErrFenced) && wait < commitTimeout; wait *= 2 {
		f.cache.storeFailed(err)
		if !sleep(ctx, wait) {
			break
		}
		if err = f.cache.store.Commit(context.WithoutCancel(ctx), o); done() {
			f.cache.storeAnswered()
		}
	}
	if !done() {
		if f.commits.fail() {
			f.outdated.Store(true) // the store has it all the same
		}
		return err
	}
	if o.In < time.Duration(f.cache.looks.Load())-f.cache.elapsed() {
		f.cache.wake(f.cache.changed)
	}
	grown := max(0, len(o.FeedState)-len(lease.FeedState)) + max(0, len(o.PollState)-len(lease.PollState))
	if o.Body != nil && err == nil {
		grown += len(o.Body.Data)
	}
	f.cache.grown(int64(grown))
	if err != nil && !f.cache.short.Load() {
		f.cache.wake(f.cache.full) // the log has to say so
	}
	return err
}

// commitFailed deals with an outcome that could not be committed. All of it is dropped: the
// claim stands, and the stored version, its validators and its schedule still belong
// together. A pause that is longer than the claim is kept in memory.
func (f *Feed) commitFailed(ctx context.Context, s, completed *feedstate.State, v feedstate.Classified, err error) {
	if errors.Is(err, store.ErrFenced) {
		_ = f.reload(context.WithoutCancel(ctx)) // if it fails, the next claim brings the record
		f.cache.log().Warn("the outcome of a poll came too late: the feed has been claimed or forgotten since", f.cache.urlField(f.key.String()), errField(err))
		return
	}
	f.cache.storeFailed(err)
	next := *s
	if s.Version == f.missing.Load() {
		f.dropVersion(&next)
	}
	next.Last.At, next.Last.Status = completed.Last.At, v.Answer.Status
	next.Last.Result, next.Last.Failure, next.Last.Error = status.ResultFailed, policy.FailureStore, feedurl.Message(err.Error())
	// The store may have written the version although it failed: its number is not used again.
	next.Feed.Version.Number = completed.Feed.Version.Number
	m := f.cache.moment()
	next.Override(m, max(s.Due, completed.Due)-m.Elapsed, policy.HintStore)
	f.unstored.Store(int64(next.Due))
	v.Answer.Failure, v.Answer.Err, v.Result = policy.FailureStore, err, status.ResultFailed
	f.publish(&next)
	f.report(s, &next, v)
}

// ownCommit is the last commit that this node has made of a feed, or is making. The store reports changes of all nodes, and
// this one knows the outcome of its own. The token of the feed's state is not enough: a node that has seen another's
// claim has it too.
type ownCommit struct {
	mu    sync.Mutex
	token store.Token // 0: none
	seen  bool        // the store has reported it
}

// begin says that changes with a token are from now on this node's own.
func (o *ownCommit) begin(token store.Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.token, o.seen = token, false
}

// see reports whether a change with a token is the commit.
func (o *ownCommit) see(token store.Token) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if token == 0 || token != o.token {
		return false
	}
	o.seen = true
	return true
}

// fail says that the commit has failed. It reports whether the store has written it all the same.
func (o *ownCommit) fail() (written bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	written = o.seen
	o.token, o.seen = 0, false
	return written
}
