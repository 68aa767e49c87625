// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

const (
	// maxQueued is how long a poll may wait for its host's slot, before it gives up
	// and is tried again later.
	maxQueued = 5 * time.Minute
	// grace is how long after its claim a poll may start. What has not started by then
	// is returned: a sleeper that wakes up late must not poll.
	grace = 10 * time.Second
	// maxGap is the most that the time between two polls counts beyond what was planned,
	// for what both of them saw: nobody has looked in between, or a clock was wrong.
	maxGap = 24 * time.Hour
	// commitPatience is for how long the store may be away at the end of a poll. Its claim
	// covers that, and the same outcome may be committed twice.
	commitPatience = 15 * time.Second
	// retry is when a poll that could not be claimed here is tried again.
	retry = time.Minute
)

// errand is why a poll is made.
type errand struct {
	running *running
	urgent  bool          // a reader waits for it
	floor   time.Duration // above 0: by hand, and the last poll must be so long ago
	lease   *store.Lease  // it has been claimed already
	leased  time.Duration // when, as [Cache.elapsed] counts
}

// run is the life of a poll: wait for the host's slot, claim, ask, judge, decide,
// commit, publish. It makes at most one request to the feed's origin, its redirects
// included, and none unless the store has durably granted it.
func (f *Feed) run(ctx context.Context, e errand) {
	c, origin, rules := f.cache, f.origin(), f.rules()
	if origin == nil {
		f.turnBack(ctx, e, time.Hour, policy.HintPause) // its shield is not configured any more
		return
	}
	if e.lease == nil && !c.mayClaim() {
		f.awaitStore()
		return
	}
	s := f.state.Load()
	if wait := s.putOff - c.elapsed(); e.lease != nil && wait > 0 {
		f.turnBack(ctx, e, wait, s.facts.Winner)
		return
	}
	if until := f.skipped(s); until > 0 && e.floor == 0 {
		f.turnBack(ctx, e, until, policy.HintSkipHours)
		return
	}
	if until := f.raised(s, rules); until > 0 && e.floor == 0 {
		f.turnBack(ctx, e, until, policy.HintFloor)
		return
	}
	unread := s.version == 0 && !f.configured()
	slot := f.acquire(ctx, origin, e, unread)
	if slot == nil {
		return
	}
	defer slot.Release()
	release, err := c.polls.Load().acquire(ctx, unread)
	c.waiting.Add(-1)
	if err != nil {
		f.turnBack(ctx, e, retry, policy.HintPolls)
		return
	}
	defer release()
	lease := e.lease
	if c.lookAtClock(); lease != nil && c.elapsed()-e.leased > grace {
		// Another node may hold it by now: what was granted so long ago is claimed anew.
		c.giveBack(lease, 0)
		lease = nil
	}
	if lease == nil {
		if lease = f.claim(ctx, e, origin.Host(f.key.url), rules); lease == nil {
			return
		}
	}
	var planned time.Duration
	if e.floor > 0 {
		planned = s.due
	}
	s = f.claimed(lease)
	if s.stuck = nil; e.floor == 0 { // a poll by hand comes besides the regular ones
		s.stuck = s.doubt(c.now())
	}
	e.running.send()
	large := &body{of: c.bodies}
	defer func() { large.reserved.release() }()
	v := f.outcome(ctx, slot, s, rules, large)
	f.settle(ctx, s, v, lease, planned, origin.Host(f.key.url), rules)
}

// survive has the process outlive a panic that no verdict is made of. A claim that was
// made stands until it lapses.
func (f *Feed) survive() {
	if p := recover(); p != nil {
		f.cache.log().Error("poll panicked, the feed waits until its claim lapses", urlField(f.key.text), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
}

// panicked is the verdict on an answer that nobody has thought of.
func (f *Feed) panicked(a policy.Answer, p any) verdict {
	f.cache.log().Error("poll panicked", urlField(f.key.text), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	a.At, a.Failure = f.cache.now(), policy.FailureInternal
	a.Err = errors.New("the gateway cannot deal with the answer: see its log")
	return verdict{answer: a, result: status.ResultFailed}
}

// claimed is the state of a feed whose poll has been granted. Readers go on seeing
// when it was due: they join the poll.
func (f *Feed) claimed(lease *store.Lease) *state {
	old := f.state.Load()
	s := *f.read(lease.Record, old)
	if s.putOff, s.gap = 0, s.facts.Pause; old.known && old.granted != neverGranted {
		s.gap = s.granted - old.granted // otherwise about as long ago as was planned
	}
	s.gap = min(s.gap, s.facts.Pause+maxGap)
	shown := s
	shown.due = old.due
	f.publish(&shown)
	return &s
}

// outcome asks and judges. A panic on the way is a failure like any other: whatever
// an origin sends, a poll that was claimed has an outcome, which is explained and
// backed off.
func (f *Feed) outcome(ctx context.Context, slot policy.Slot, s *state, rules policy.Rules, large *body) (v verdict) {
	a := policy.Answer{Asked: f.cache.now(), URL: f.key.text}
	defer func() {
		if p := recover(); p != nil {
			v = f.panicked(a, p)
		}
	}()
	a = f.ask(ctx, slot, s, rules, large)
	return f.judge(s, a)
}

// skipped is how long the feed has asked not to be polled, from now on. Its decision
// kept the next poll out of skipHours and skipDays, but one that waited for a reader
// may come due within them.
func (f *Feed) skipped(s *state) time.Duration {
	now := f.cache.now()
	planned := now.Add(min(0, s.due-f.cache.elapsed()))
	return max(0, s.memo.History.Hints.OutOfSkip(planned, now, f.cache.chance()).Sub(now))
}

// raised is how long the feed waits because its floor has been raised since the next
// poll was planned: an operator who has been asked to poll less often is obeyed at once.
func (f *Feed) raised(s *state, rules policy.Rules) time.Duration {
	now := f.cache.now()
	for _, t := range s.memo.Considered {
		planned := time.Duration(t.Seconds) * time.Second
		if t.Hint == policy.HintFloor && planned < rules.MinInterval && s.memo.History.Unsent == 0 && !s.facts.At.After(now) {
			return s.facts.At.Add(rules.MinInterval).Sub(now)
		}
	}
	return 0
}

// acquire waits for the slot of the feed's host.
func (f *Feed) acquire(ctx context.Context, origin Origin, e errand, unread bool) policy.Slot {
	limit := int64(maxWaiting)
	if unread {
		limit /= newPart
	}
	if f.cache.waiting.Add(1) > limit {
		f.cache.waiting.Add(-1)
		f.turnBack(ctx, e, retry, policy.HintPolls)
		return nil
	}
	queued, cancel := context.WithTimeout(ctx, maxQueued)
	defer cancel()
	slot, err := origin.Acquire(queued, f.key.url, e.urgent)
	if err == nil {
		return slot // it waits on, to be in flight
	}
	f.cache.waiting.Add(-1)
	if held, ok := errors.AsType[*policy.Held](err); ok {
		f.turnBack(ctx, e, held.Until.Sub(f.cache.now()), held.Why)
		return nil
	}
	f.turnBack(ctx, e, retry, policy.HintHostSlot)
	return nil
}

// claim asks the store for the poll. It returns nil where it must not be made: the
// next one moves forward in the store before this one is sent, so that a crash costs
// a delay and never a second poll.
func (f *Feed) claim(ctx context.Context, e errand, host policy.Host, rules policy.Rules) *store.Lease {
	c := f.cache
	for {
		s := f.state.Load()
		claim := store.Claim{
			ID: f.id, URL: f.key.text, Hold: s.hold(rules), Floor: e.floor,
			Configured: f.configured(), Host: host,
		}
		asked, answered := c.elapsed(), c.claiming()
		leases, err := c.store.Claim(ctx, []store.Claim{claim})
		answered()
		if err != nil {
			if ctx.Err() == nil { // otherwise it is we who are closing
				c.claimFailed(err)
			}
			f.awaitStore()
			return nil
		}
		c.storeAnswered()
		lease := &leases[0]
		switch lease.Denied {
		case "":
			if c.lookAtClock(); c.elapsed()-asked <= grace {
				return lease
			}
			c.giveBack(lease, 0) // another node may hold the feed by now: it is claimed anew
			continue
		case store.DeniedBusy:
			// Another node has just asked the host; it is this feed's turn here.
			if sleep(ctx, lease.Wait) {
				continue
			}
		case store.DeniedPaused:
			f.adopt(lease.Record)
			f.postpone(lease.Wait, lease.Why)
			return nil
		}
		f.adopt(lease.Record) // somebody else has polled: their outcome is ours
		return nil
	}
}

// turnBack ends a poll before anything was sent. A claim that was made for it is
// returned.
func (f *Feed) turnBack(ctx context.Context, e errand, wait time.Duration, why string) {
	if e.lease == nil {
		f.postpone(wait, why)
		return
	}
	wait = max(wait, time.Second)
	s := f.adopt(e.lease.Record)
	next := *s
	next.putOff = 0
	next.overrule(f.cache, wait, why)
	_ = f.commit(ctx, s, &next, e.lease, store.Outcome{In: wait, Returned: true}) // it lapses otherwise
	f.publish(&next)
}

// postpone puts the next poll off, in memory only: nothing has been claimed, and
// what holds it is known elsewhere. It brings nothing forward.
func (f *Feed) postpone(wait time.Duration, why string) {
	s := f.state.Load()
	if now := f.cache.elapsed(); now+wait > s.due {
		next := *s
		next.overrule(f.cache, wait, why)
		next.putOff = next.due
		f.publish(&next)
	}
}

// awaitStore puts the next poll off because the store refuses claims. Unlike what is
// postponed it is not kept apart from what the store says: where that speaks again, it
// is right.
func (f *Feed) awaitStore() {
	s := f.state.Load()
	wait := storeRetry + time.Duration(2*f.cache.chance()*float64(storeRetry))
	if now := f.cache.elapsed(); now+wait > s.due {
		next := *s
		next.overrule(f.cache, wait, policy.HintStore)
		f.publish(&next)
	}
}

// ask makes the request.
func (f *Feed) ask(ctx context.Context, slot policy.Slot, s *state, rules policy.Rules, large *body) policy.Answer {
	c := f.cache
	settings := c.settings.Load()
	a := slot.Poll(ctx, policy.Ask{
		URL:         f.key.url,
		Validators:  s.validators(c.now()),
		StartBy:     c.now().Add(grace),
		Timeout:     rules.Timeout,
		MaxBody:     rules.MaxBody,
		Subscribers: settings.Subscribers(f.key.text),
		Allow: func(u feedurl.URL) error {
			if f.configured() || f.key.shielded() {
				return nil
			}
			return settings.Allow(f.key.url, u)
		},
		Hop:   f.hop,
		Large: large.reserve,
	})
	a.At = c.now() // RFC 9111 section 4.2.3: response_time, by our clock
	return a
}

// settle makes an answer the feed's state: what was learnt, and the decision. It is
// committed before anybody sees it.
func (f *Feed) settle(ctx context.Context, s *state, v verdict, lease *store.Lease, planned time.Duration, host policy.Host, rules policy.Rules) {
	c := f.cache
	c.noticeNetwork(f, s, host.Name, v.answer)
	next, o := f.conclude(s, &v, planned, rules)
	o.Host = host
	if next.memo.Alias != "" && !o.Returned {
		if err := c.found(ctx, f, next.memo.Alias, o.In); err != nil {
			next.memo.Alias = s.memo.Alias // the next poll finds out again
		} else {
			o.In = aliasInterval
			next.overrule(c, aliasInterval, policy.HintMoved)
		}
	}
	if err := f.commit(ctx, s, &next, lease, o); err != nil {
		f.uncommitted(ctx, s, &next, v, err)
		return
	}
	f.publish(&next)
	if v.body != nil {
		if size, ok := c.memory.tryReserve(len(v.body.Data)); ok {
			stored := &next.memo.Version
			c.memory.add(f.id, stored.Represent(stored.stored(), v.body.Data), size).release()
		}
		f.whole.Store(&next)
	}
	f.report(s, &next, v)
}

// commit makes an outcome durable: validators, decision and, where there is a new
// version, the body that they describe, in one transaction.
func (f *Feed) commit(ctx context.Context, s, next *state, lease *store.Lease, o store.Outcome) error {
	var err error
	o.ID, o.Token = f.id, lease.Token
	if o.State == "" {
		o.State, o.Host, o.Hold = next.stored(f.configured()), lease.Host, lease.Hold
	}
	if o.Facts, err = next.encodeFacts(); err != nil {
		return fmt.Errorf("encoding facts: %w", err)
	}
	if o.Memo, err = next.encodeMemo(); err != nil {
		return err
	}
	next.size = s.size + 2*int64(max(0, len(o.Memo)-len(lease.Memo))+max(0, len(o.Facts)-len(lease.Facts)))
	f.committing(lease.Token)
	// The answer is there and paid for: it is kept even while the cache closes.
	err = f.cache.store.Commit(context.WithoutCancel(ctx), o)
	for wait := time.Second; err != nil && !o.Returned && !errors.Is(err, store.ErrFenced) && wait < commitPatience; wait *= 2 {
		f.cache.storeFailed(err)
		if !sleep(ctx, wait) {
			break
		}
		if f.overtaken.Load() {
			_ = f.reload(ctx) // others go on, where the claim is not ours any more; [Feed.catchUp] reads it again
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
		f.cache.grown(int64(len(o.Body.Data)))
	}
	return nil
}

// uncommitted deals with an outcome that could not be committed. It is thrown away whole:
// the claim stands, and the stored version, its validators and its schedule still
// belong together. Only where the outcome asks for a longer pause than the claim,
// that is kept, for as long as memory lasts.
func (f *Feed) uncommitted(ctx context.Context, s, settled *state, v verdict, err error) {
	if errors.Is(err, store.ErrFenced) {
		_ = f.reload(context.WithoutCancel(ctx)) // where that fails it is seen when the next poll is claimed
		f.reportLate(v, err)
		return
	}
	f.cache.storeFailed(err)
	next := *s
	next.facts.At, next.facts.Status = settled.facts.At, v.answer.Status
	next.facts.Result, next.facts.Failure, next.facts.Error = status.ResultFailed, policy.FailureStore, line(err)
	// The store may have written what it said it had not: a number is not used again.
	next.memo.Version.Number = settled.memo.Version.Number
	next.overrule(f.cache, max(s.due, settled.due)-f.cache.elapsed(), policy.HintStore)
	next.putOff = next.due
	v.answer.Failure, v.answer.Err, v.result = policy.FailureStore, err, status.ResultFailed
	f.publish(&next)
	f.report(s, &next, v)
}

// sleep waits, and reports whether it did so for the whole time.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
