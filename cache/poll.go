// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// slotWait is how long a reserved poll may wait for its host's slot. A poll whose
// slot is farther away is not reserved yet.
const slotWait = grace / 2

// maxValidators is how long an origin's validators may be, in bytes. They are
// stored and sent with each poll; real ones have less than a hundred.
const maxValidators = 4096

// hintStore is the winner of a decision that the store's failure has overruled.
const hintStore = "store"

// storeRetry is how long polls pause after the store has refused a reservation.
const storeRetry = time.Minute

// unsentRetry is when a poll that could not be sent is tried again, where its
// host's pacing does not say.
const unsentRetry = 30 * time.Second

// poll is the life of a poll: reserve, ask, judge, decide, commit, publish.
// It makes at most one request to the feed's origin (its redirects included),
// and none unless the store has durably granted it. The trail is the feeds on
// whose behalf it is made.
func (f *Feed) poll(ctx context.Context, force bool, trail []*Feed) {
	s, now, origin, rules := f.state.Load(), f.cache.now(), f.origin(), f.rules()
	if origin == nil {
		f.postpone(s, now.Add(unsentRetry), policy.HintPause) // until a request shows the way to the site
		return
	}
	if force && f.tooEarly(s, rules, now) != nil || !force && !s.due(now) {
		// Another poll ended between somebody's look and this one's start. The
		// prefetching may have taken the feed off its agenda on the way here.
		f.cache.agenda.put(f, s.Next)
		return
	}
	force = f.expired.Swap(false) || force
	// The decision kept the time of the poll out of skipHours and skipDays, but a
	// poll that waited for a reader may come due within them. A person may insist.
	if free := s.memo.History.Hints.OutOfSkip(s.Next, now, f.cache.chance()); free.After(now) && !force {
		f.postpone(s, now.Add(free.Sub(now)), policy.HintSkipHours)
		return
	}
	if at, why := origin.Ready(f.target(s)); at.After(now.Add(slotWait)) {
		f.postpone(s, at, why)
		return
	}
	planned := s.Next
	s, granted := f.reserve(ctx, s, rules, now)
	if !granted {
		return
	}
	a, lent := f.ask(ctx, origin, s, rules, now, trail)
	if a.Failure == policy.FailureNotStarted {
		f.giveBack(ctx, s, planned, a)
		return
	}
	v := f.judge(s, a, now)
	v.lent = lent
	next := f.settle(s, v, rules)
	if err := f.commit(ctx, s, next, v.body); err != nil {
		f.lost(ctx, s, next, v, err)
		return
	}
	f.publish(next, v.body)
	f.report(s, next, v)
}

// reserve claims the poll: the time of the next one moves forward in the store
// before this one is sent, so that a crash costs a delay and never a second poll.
func (f *Feed) reserve(ctx context.Context, s *state, rules policy.Rules, now time.Time) (*state, bool) {
	interval := max(rules.MinInterval, s.memo.History.Interval)
	claim := Claim{ID: f.id, URL: f.url, Token: s.Token, Now: now, Next: now.Add(grace + interval)}
	grants, err := f.cache.store.Reserve(ctx, []Claim{claim})
	if err != nil {
		if ctx.Err() == nil { // otherwise it is we who are closing
			f.cache.outage.begin(f.cache.log(), err)
		}
		f.postpone(s, now.Add(storeRetry), hintStore)
		return s, false
	}
	f.cache.outage.end(f.cache.log())
	if !grants[0].OK {
		f.reload(ctx) // somebody else has polled: their outcome is ours
		return s, false
	}
	reserved := *s
	// The version is what we know to have: the store does not notice a lost body.
	reserved.Token, reserved.Next = grants[0].Schedule.Token, claim.Next
	return &reserved, true
}

// ask makes the request, unless another feed's poll lends its answer.
func (f *Feed) ask(ctx context.Context, origin Origin, s *state, rules policy.Rules, now time.Time, trail []*Feed) (a policy.Answer, lent bool) {
	target := f.target(s)
	if !f.shielded() {
		if a, ok := f.standIn(ctx, s, target, trail); ok {
			return a, true
		}
	}
	a = origin.Poll(ctx, policy.Ask{
		URL:         target,
		Validators:  s.validators(now),
		StartBy:     now.Add(grace),
		Timeout:     rules.Timeout,
		MaxBody:     rules.MaxBody,
		Subscribers: f.cache.settings.Load().Subscribers(f.url),
		Hop:         f.hop,
	})
	a.At = f.cache.now() // RFC 9111 section 4.2.3: response_time, by our clock
	if a.Failure == policy.FailureDelegated {
		a = f.delegate(ctx, s, a, trail)
	}
	return a, false
}

// validators are those to be sent: none without a body that a 304 could confirm.
func (s *state) validators(now time.Time) policy.Validators {
	v := s.memo.Validators
	if s.Version == 0 {
		return policy.Validators{}
	}
	// An origin that alters ETags when it compresses (Apache's "-gzip") never
	// matches its own. If-None-Match would override If-Modified-Since there (RFC
	// 9110 section 13.1.3), so the date goes alone for a while.
	if v.LastModified != "" && now.Before(s.memo.Muted) {
		v.ETag = ""
	}
	return v
}

// giveBack commits that nothing was sent. The reservation's token is spent; the
// feed is due again as soon as its host may be asked, though not before the time
// that was planned when it was reserved.
func (f *Feed) giveBack(ctx context.Context, s *state, planned time.Time, a policy.Answer) {
	next := *s
	next.Next = f.cache.now().Add(unsentRetry)
	why := "not-started"
	if a.NotBefore.After(next.Next) {
		next.Next, why = a.NotBefore, a.Holder
	}
	if planned.After(next.Next) {
		next.Next = planned // it was a poll by hand: what was decided before still holds
	} else {
		next.memo.Decision = held(next.memo.Decision, next.Next, why)
	}
	if len(a.Moves) > 0 {
		// Something was sent after all, but what it led to is another feed's: who
		// wants a poll by hand has to wait for the floor.
		next.memo.Last = last{At: a.At, Status: a.Status, Result: ResultFailed, Failure: a.Failure, Error: line(a.Err)}
	}
	if err := f.commit(ctx, s, &next, nil); err != nil {
		f.cache.log().Warn("poll that was not sent could not be given back", urlField(f.url), errField(err))
		next = *s // the reservation stands
	}
	f.publish(&next, nil)
}

// postpone puts the next poll off: nothing has been reserved, and what holds it is
// known elsewhere. A poll by hand that cannot be made brings nothing forward.
func (f *Feed) postpone(s *state, until time.Time, why string) {
	if until.Before(s.Next) {
		f.cache.agenda.put(f, s.Next)
		return
	}
	f.reschedule(s, until, why)
}

// reschedule moves the next poll, in memory only.
func (f *Feed) reschedule(s *state, until time.Time, why string) {
	next := *s
	next.Next = until
	next.memo.Decision = held(s.memo.Decision, until, why)
	f.publish(&next, nil)
}

// held is a decision that something outside of it has overruled.
func held(d policy.Decision, until time.Time, why string) policy.Decision {
	seconds := int64(0)
	if !d.At.IsZero() {
		seconds = int64(until.Sub(d.At).Seconds())
		d.Interval = until.Sub(d.At)
	}
	d.Next, d.Winner = until, why
	// A fresh slice: the old decision's terms belong to a published state.
	terms, holder := make([]policy.Term, 0, len(d.Considered)+1), policy.Term{Hint: why}
	for _, t := range d.Considered {
		if t.Hint == why {
			holder.Raw = t.Raw
		} else {
			terms = append(terms, t)
		}
	}
	holder.Seconds, holder.Used = seconds, true
	d.Considered = append(terms, holder)
	return d
}

// settle is the feed's state after an answer: what was learnt, and the decision.
func (f *Feed) settle(s *state, v verdict, rules policy.Rules) *state {
	next, a := *s, v.answer
	m := &next.memo
	m.History = m.History.Learn(a, v.document, v.result == ResultUnchanged)
	if v.result == ResultNew {
		// Numbers are never used twice, also where a body was lost: memory and store
		// tell versions apart by them.
		next.Version = max(next.Version, m.Version.Number) + 1
		if known := m.Version; known.Tag != "" {
			m.Past = append([]past{{known.Tag, known.LastModified}}, m.Past[:min(len(m.Past), maxPast-1)]...)
		}
		m.Version = v.version
		m.Version.Number = next.Version
		m.Withdrawn = false
	}
	if tag := originTag(a); v.sameBytes && tag != s.memo.Validators.ETag {
		m.Version.OriginTag = tag // the origin has a new one for them
	}
	if v.good() {
		m.Validated, m.Suspect, m.Final = a.At, time.Time{}, a.URL
		m.learnValidators(s, v)
	} else if a.Failure == policy.FailureSuspect && m.Suspect.IsZero() {
		m.Suspect = a.At
	}
	if f.shielded() && v.good() {
		m.Version.learnHeader(a)
	}
	if a.Failure == policy.FailureNotShared {
		next.Version, m.Withdrawn = 0, true // what was everybody's is not any more
	}
	m.learnMoves(f.url, v)
	m.Decision = policy.Decide(rules, m.History, a, a.At, f.cache.chance())
	m.History = m.History.Decided(m.Decision)
	next.Next = monotonic(m.Decision, a.At)
	m.Pause = pause{}
	if a.NotBefore.After(a.At) && strings.HasSuffix(a.Holder, "cooldown") {
		m.Pause = pause{a.NotBefore, a.Holder}
	}
	m.Last = last{At: a.At, Status: a.Status, Result: v.result, Failure: a.Failure, Error: line(a.Err)}
	m.Asked = time.Unix(f.asked.Load(), 0).UTC()
	return &next
}

// monotonic is the time of the next poll with the monotonic reading of the last
// one's end: steps of the wall clock change nothing while the process runs.
func monotonic(d policy.Decision, end time.Time) time.Time {
	if d.Next.Equal(policy.Never) {
		return d.Next
	}
	return end.Add(d.Next.Sub(d.At))
}

// anchored is a time that comes from the store, with the monotonic reading of now.
func anchored(next, now time.Time) time.Time {
	if ended(next) {
		return next // as a length from now it would be cut to 292 years
	}
	return now.Add(next.Sub(now))
}

// learnValidators keeps the origin's validators. A 200 replaces the whole set,
// also where it brought nothing new: they are for the origin, not for readers.
func (m *memo) learnValidators(s *state, v verdict) {
	a := v.answer
	if a.Status != 200 {
		m.Unmatched = 0
		return
	}
	fresh := policy.Validators{URL: a.URL, ETag: a.Header.Get("ETag"), LastModified: a.Header.Get("Last-Modified")}
	sent := s.validators(a.Asked)
	if v.sameBytes && sent.ETag != "" && sent.ETag == fresh.ETag {
		m.Unmatched++
	} else {
		m.Unmatched = 0
	}
	if m.Unmatched >= 3 && fresh.LastModified != "" {
		m.Muted, m.Unmatched = a.At.Add(7*24*time.Hour), 0
	}
	m.Validators = fresh
	if fresh.Empty() || len(fresh.ETag)+len(fresh.LastModified) > maxValidators {
		m.Validators = policy.Validators{}
	}
}

// commit makes the outcome durable: validators, decision and, where there is a
// new version, the body that they describe, in one transaction.
func (f *Feed) commit(ctx context.Context, s, next *state, body *encoded) error {
	memo, err := next.memo.encode()
	if err != nil {
		return fmt.Errorf("encoding memo: %w", err)
	}
	o := Outcome{ID: f.id, Token: s.Token, Now: f.cache.now(), Next: next.Next, Memo: memo}
	if body != nil {
		o.Body = &Body{Version: next.Version, Coded: body.stored()}
	}
	// The answer is there and paid for: it is kept even while the cache closes.
	return f.cache.store.Commit(context.WithoutCancel(ctx), o)
}

// lost deals with an outcome that could not be committed. It is thrown away
// whole: the reservation stands, and the stored version, its validators and its
// schedule still belong together. Only where the outcome asks for a longer pause
// than the reservation, that is kept, for as long as memory lasts.
func (f *Feed) lost(ctx context.Context, s, settled *state, v verdict, err error) {
	if errors.Is(err, ErrFenced) {
		f.cache.log().Warn("poll's outcome came too late, somebody else has polled the feed since", urlField(f.url))
		f.reload(ctx)
		return
	}
	f.cache.outage.begin(f.cache.log(), err)
	next := *s
	next.memo.Last = last{At: v.answer.At, Status: v.answer.Status, Result: ResultFailed, Failure: policy.FailureStore, Error: line(err)}
	// The store may have written what it said it had not: a number is not used again.
	next.memo.Version.Number = settled.memo.Version.Number
	next.memo.Decision = held(s.memo.Decision, s.Next, hintStore)
	if settled.Next.After(s.Next) {
		next.Next, next.memo.Decision = settled.Next, settled.memo.Decision
	}
	v.answer.Failure, v.answer.Err, v.result = policy.FailureStore, err, ResultFailed
	f.publish(&next, nil)
	f.report(s, &next, v)
}

// line is what is remembered of an error: one line, and not too long, as it may
// quote whatever an origin has sent.
func line(err error) string {
	if err == nil {
		return ""
	}
	const most = 400 // bytes
	text := policy.OneLine(err.Error())
	if len(text) > most {
		text = text[:most] + "..."
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// publish shows a state to readers. The body of a new version goes into memory
// as a courtesy; which version is current, the state alone says.
func (f *Feed) publish(next *state, body *encoded) {
	old := f.state.Swap(next)
	switch {
	case old.Version == 0 && next.Version != 0:
		f.countUnread(-1)
	case old.Version != 0 && next.Version == 0:
		f.countUnread(1)
	}
	f.cache.finals.claim(f, old, next)
	if body != nil {
		f.cache.memory.put(f.key, prepare(f.id, next, body))
	}
	f.cache.agenda.put(f, next.Next)
}

// reload takes over what the store says of the feed.
func (f *Feed) reload(ctx context.Context) {
	now := f.cache.now()
	r, err := f.cache.store.Load(ctx, f.id)
	if errors.Is(err, ErrNoRecord) {
		f.publish(&state{memo: memo{Asked: now}}, nil)
		return
	}
	var s *state
	if err == nil {
		s, err = decodeRecord(r)
	}
	if err != nil {
		f.cache.log().Error("feed's record cannot be read", urlField(f.url), errField(err))
		f.postpone(f.state.Load(), now.Add(storeRetry), hintStore)
		return
	}
	s.Next = anchored(s.Next, now)
	f.publish(s, nil)
}
