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
	if !force && !s.due(now) {
		return // another poll ended between the reader's look and this one's start
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
	s, granted := f.reserve(ctx, s, rules, now)
	if !granted {
		return
	}
	a := f.ask(ctx, origin, s, rules, now, trail)
	if a.Failure == policy.FailureNotStarted {
		f.giveBack(ctx, s, a)
		return
	}
	v := f.judge(s, a, now)
	next := f.settle(s, v, rules)
	if err := f.commit(ctx, s, next, v.body); err != nil {
		f.lost(ctx, s, v, err)
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
		f.cache.outage.begin(f.cache.log(), err)
		f.postpone(s, now.Add(storeRetry), "store")
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

// ask makes the request.
func (f *Feed) ask(ctx context.Context, origin Origin, s *state, rules policy.Rules, now time.Time, trail []*Feed) policy.Answer {
	target := f.target(s)
	if !f.shielded() {
		if a, ok := f.standIn(ctx, s, target, trail); ok {
			return a
		}
	}
	a := origin.Poll(ctx, policy.Ask{
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
		a = f.delegate(ctx, a, trail)
	}
	return a
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
// feed stays due as soon as its host may be asked.
func (f *Feed) giveBack(ctx context.Context, s *state, a policy.Answer) {
	next := *s
	next.Next = f.cache.now().Add(unsentRetry)
	why := "not-started"
	if a.NotBefore.After(next.Next) {
		next.Next, why = a.NotBefore, a.Holder
	}
	next.memo.Decision = held(next.memo.Decision, next.Next, why)
	if err := f.commit(ctx, s, &next, nil); err != nil {
		f.cache.log().Warn("poll that was not sent could not be given back", urlField(f.url), errField(err))
		next = *s // the reservation stands
	}
	f.publish(&next, nil)
}

// postpone moves the next poll in memory: nothing has been reserved, and what
// holds it is known elsewhere.
func (f *Feed) postpone(s *state, until time.Time, why string) {
	next := *s
	next.Next = until
	next.memo.Decision = held(s.memo.Decision, until, why)
	f.publish(&next, nil)
}

// held is a decision that something outside of it has pushed back.
func held(d policy.Decision, until time.Time, why string) policy.Decision {
	seconds := int64(0)
	if !d.At.IsZero() {
		seconds = int64(until.Sub(d.At).Seconds())
		d.Interval = until.Sub(d.At)
	}
	d.Next, d.Winner = until, why
	// A fresh slice: the old decision's terms belong to a published state.
	d.Considered = append(append([]policy.Term(nil), withoutTerm(d.Considered, why)...),
		policy.Term{Hint: why, Seconds: seconds, Used: true})
	return d
}

func withoutTerm(terms []policy.Term, hint string) []policy.Term {
	kept := make([]policy.Term, 0, len(terms))
	for _, t := range terms {
		if t.Hint != hint {
			kept = append(kept, t)
		}
	}
	return kept
}

// settle is the feed's state after an answer: what was learnt, and the decision.
func (f *Feed) settle(s *state, v verdict, rules policy.Rules) *state {
	next, a := *s, v.answer
	m := &next.memo
	m.History = m.History.Learn(a, v.document)
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
	m.Last = last{At: a.At, Status: a.Status, Result: v.result, Failure: a.Failure}
	if a.Err != nil {
		m.Last.Error = a.Err.Error()
	}
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

// anchored is a time that comes from the store with the monotonic reading of now.
func anchored(next, now time.Time) time.Time {
	if next.Year() >= 9999 {
		return next // never; as a length from now it would be cut to 292 years
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
	if fresh.Empty() {
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
// schedule still belong together.
func (f *Feed) lost(ctx context.Context, s *state, v verdict, err error) {
	if errors.Is(err, ErrFenced) {
		f.reload(ctx)
		return
	}
	f.cache.outage.begin(f.cache.log(), err)
	next := *s
	next.memo.Last = last{At: v.answer.At, Status: v.answer.Status, Result: ResultFailed, Failure: policy.FailureStore, Error: err.Error()}
	next.memo.Decision = held(s.memo.Decision, s.Next, "store")
	v.answer.Failure, v.answer.Err, v.result = policy.FailureStore, err, ResultFailed
	f.publish(&next, nil)
	f.report(s, &next, v)
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
		f.cache.log().Error("feed's record could not be read", urlField(f.url), errField(err))
		f.postpone(f.state.Load(), now.Add(storeRetry), "store")
		return
	}
	s.Next = anchored(s.Next, now)
	f.publish(s, nil)
}
