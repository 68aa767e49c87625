// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

const (
	// maxGap is how much longer than planned the time between two polls may count for what
	// both of them saw: the feed was not watched in between, or a clock was wrong.
	maxGap = 24 * time.Hour
	// commitTimeout is how long a commit is retried. The claim covers that time, and
	// committing the same outcome twice does no harm.
	commitTimeout = 15 * time.Second
)

// pollRequest is why a poll is made.
type pollRequest struct {
	// floor, if above 0, says that it is made by hand, or for another reason before the feed is due: the last poll must
	// be so long ago.
	floor time.Duration
}

// run is the life of a poll that has been claimed: ask, classify, decide, commit, publish. It makes at most one
// request to the feed's origin, redirects included.
func (f *Feed) run(ctx context.Context, t *turn, lease *store.Lease) {
	defer f.readIfOutdated()
	defer f.finish(t.poll)
	defer f.recoverPanic()
	defer f.cache.wake(f.cache.schedule.more) // its places are free
	defer t.release()
	rules := f.rules()
	var planned time.Duration
	if t.request.floor > 0 {
		planned = f.state.Load().Due
	}
	s := f.granted(lease)
	s.Unconditional = s.WhyUnconditional(t.poked, rules.OwnSite)
	t.poll.send()
	f.pinged.Store(false)
	var large largeBody
	defer large.done()
	v, next, o := f.attempt(ctx, t, s, planned, rules, &large)
	if t.poked && rules.OwnSite && !v.Good() {
		next.AskUnconditionally() // the next one has to see what has changed
	}
	o.Site = t.host.Site
	f.complete(ctx, s, &next, v, lease, o)
	f.cache.schedule.answered(f.id, len(o.Pauses) > 0)
}

// recoverPanic logs a panic that did not become a failure of the poll. The feed's claim
// stands until it expires.
func (f *Feed) recoverPanic() {
	if p := recover(); p != nil {
		f.cache.log().Error("poll panicked, the feed waits until its claim expires", f.cache.urlField(f.key.String()), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
	}
}

// granted returns the state of a feed whose poll has been granted. Readers still see the
// feed as due, so that they join the poll.
func (f *Feed) granted(lease *store.Lease) *feedstate.State {
	old := f.state.Load()
	kept := f.stateFrom(lease.Record, old)
	s := *kept
	if s.Gap = s.Last.Pause; old.Recorded && old.Granted != feedstate.NeverGranted {
		s.Gap = s.Granted - old.Granted // otherwise about as long ago as was planned
	}
	s.Gap, s.AskedByUser = min(s.Gap, s.Last.Pause+maxGap), f.askedByUser.Swap(false)
	shown := s
	shown.Due, shown.Version, shown.Response = old.Due, kept.Version, kept.Response
	f.publish(&shown)
	return &s
}

// attempt makes the request, classifies the answer, and makes an outcome of it. A panic is a failure
// like any other, of which nothing else counts: a poll that was claimed has an outcome, whatever the
// origin sends.
func (f *Feed) attempt(ctx context.Context, t *turn, s *feedstate.State, planned time.Duration, rules policy.Rules, large *largeBody) (v feedstate.Classified, next feedstate.State, o store.Outcome) {
	a := policy.Answer{Asked: f.cache.now(), URL: f.key.String()}
	pushed := t.poked && f.pushed(s)
	defer func() {
		if p := recover(); p != nil {
			f.cache.log().Error("poll panicked", f.cache.urlField(f.key.String()), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
			v = feedstate.Classified{Pushed: pushed, Result: status.ResultFailed, Answer: policy.Answer{
				Asked: a.Asked, At: f.cache.now(), URL: f.key.String(), Pauses: a.Pauses, Failure: policy.FailureInternal,
				Err: errors.New("the gateway cannot deal with the answer: see its log"),
			}}
			next, o = f.outcomeOf(s, v, planned, rules)
		}
	}()
	a = f.ask(ctx, t, s, rules, large)
	v = f.classify(s, a)
	v.Pushed = pushed
	f.point(ctx, s, &v)
	f.cache.noticeNetwork(f, s, v.Answer)
	next, o = f.outcomeOf(s, v, planned, rules)
	return v, next, o
}

// classify decides what an answer means for the feed.
func (f *Feed) classify(s *feedstate.State, a policy.Answer) feedstate.Classified {
	v, ok := s.ClassifyUnread(a)
	if ok {
		return v
	}
	parsed, err := f.cache.inHand.parse(f.cache.life, len(a.Body))
	if err != nil {
		a.Failure, a.Err = policy.FailureInternal, fmt.Errorf("waiting to read the document: %w", err)
		return feedstate.Classified{Answer: a, Result: status.ResultFailed}
	}
	defer parsed()
	stored := func() []byte {
		body, _ := f.content(f.cache.life, s)
		return body
	}
	if v = s.ClassifyDocument(f.key, f.configured() || s.Configured, a, f.cache.now(), stored); v.Unlinked != "" {
		f.cache.log().Debug("links were left as they are", f.cache.urlField(f.key.String()), zap.String("problem", v.Unlinked))
	}
	return v
}

// ask makes the request.
func (f *Feed) ask(ctx context.Context, t *turn, s *feedstate.State, rules policy.Rules, large *largeBody) policy.Answer {
	c := f.cache
	settings := c.settings.Load()
	a := t.slot.Poll(ctx, policy.Ask{
		URL:         f.key.URL(),
		Validators:  s.Validators(),
		StartBy:     c.now().Add(feedstate.Grace),
		Timeout:     rules.Timeout,
		MaxBody:     rules.MaxBody,
		Subscribers: settings.Subscribers(f.key.String()),
		Stranger:    f.owner() == store.Any,
		EndAtMove:   !f.key.Shielded(),
		Hop:         f.hop,
		Large:       func(ctx context.Context, size int64) error { return large.reserve(ctx, f, size) },
	})
	a.At = c.now() // RFC 9111 section 4.2.3: response_time, by our clock
	return a
}

// sleep waits. It reports false if ctx has ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// outcomeOf makes a poll's outcome of its answer: what it says, and the decision.
func (f *Feed) outcomeOf(s *feedstate.State, v feedstate.Classified, planned time.Duration, rules policy.Rules) (next feedstate.State, o store.Outcome) {
	next = *s
	m := f.cache.moment()
	next.Update(f.key, v)
	var push feedstate.Subscription
	if f.cache.settings.Load().WebSub != "" {
		push = f.cache.subscription(f.id, &next)
	}
	next.UpdatePush(push, v)
	o = store.Outcome{Pauses: v.Answer.Pauses, Good: v.Answer.Good, Hops: make(map[store.ID]time.Duration, len(v.Answer.Hops))}
	for url, length := range v.Answer.Hops {
		o.Hops[store.IDOf(url)] = length
	}
	delete(o.Hops, f.id) // a redirect has led back
	if v.Answer.Unsent() {
		o.In = next.Unsent(m, v.Answer, planned, rules)
	} else {
		o.In = next.Plan(m, v, rules)
	}
	if next.NotBefore > s.NotBefore {
		o.NotBefore = next.NotBefore - m.Elapsed
	}
	if v.Body != nil {
		next.Version = next.Feed.Version.Number
		o.Body = &store.Body{Version: next.Version, Coding: v.Body.Coding, Data: v.Body.Data}
	}
	if next.Version != 0 {
		next.Response = next.Feed.Version.Response(f.key.Shielded()) // header fields may have changed
	}
	if v.Answer.Failure == policy.FailureNotShared {
		next.DropVersion()
		o.Withdraw = true // what was everybody's is not any more
	}
	if next.Unstored != nil && v.Body == nil { // there may be room by now
		o.Body = &store.Body{Version: next.Version, Coding: next.Feed.Version.Coding, Data: bytes.Join(next.Unstored.Parts, nil)}
	}
	next.Recorded, o.State = true, next.StoreState(f.configured())
	return next, o
}
