// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// outcomeOf makes a poll's outcome of its answer: what it says, and the decision.
func (f *Feed) outcomeOf(s *state, v classified, planned time.Duration, rules policy.Rules) (next state, o store.Outcome) {
	next = *s
	next.update(f.key, v)
	f.updatePush(s, &next, v)
	o = store.Outcome{Pauses: v.answer.Pauses, Good: v.answer.Good}
	if v.answer.Unsent() {
		o.In, o.Returned = next.unsent(f.cache, v.answer, planned, rules), true
	} else {
		o.In = next.plan(f.cache, v, rules)
	}
	if next.notBefore > s.notBefore {
		o.NotBefore = next.notBefore - f.cache.elapsed()
	}
	o.Hold = next.leaseTime(rules) // of the plan that has just been made
	if v.body != nil {
		next.version = next.feed.Version.Number
		o.Body = &store.Body{Version: next.version, Coding: v.body.Coding, Data: v.body.Data}
	}
	if next.version != 0 {
		next.response = next.feed.Version.response(f.key.shielded()) // header fields may have changed
	}
	if v.answer.Failure == policy.FailureNotShared {
		next.version, next.response, o.Withdraw = 0, nil, true // what was everybody's is not any more
	}
	next.known, o.State = true, next.stored(f.configured())
	return next, o
}

// update takes over what an answer says, besides when to poll next.
func (s *state) update(own Key, v classified) {
	a, m, another := v.answer, &s.feed, s.ofAnother(v.answer)
	if another {
		a.Header = nil // only the decision considers it: a Retry-After counts for any request
	}
	m.History = m.History.Update(a, v.document, v.result == status.ResultUnchanged && s.unconditional == nil)
	s.updateNotModified(v)
	if v.result == status.ResultNew {
		if known := m.Version; known.Tag != "" {
			m.Past = append([]past{{known.Tag, known.LastModified}}, m.Past[:min(len(m.Past), maxPast-1)]...)
		}
		number := max(s.version, m.Version.Number) + 1 // never used twice, also if a body was lost
		m.Version = v.version
		m.Version.Number = number
	}
	if v.document != nil {
		m.Version.Title = v.document.Title
	}
	if tag := originTag(a); v.sameBytes && tag != m.Validators.ETag {
		m.Version.OriginTag = tag // the origin has a new one for them
	}
	f := &s.last
	f.At, f.Status, f.Result, f.Failure, f.Error = a.At.Round(0).UTC(), a.Status, v.result, a.Failure, oneLine(a.Err)
	if v.good() {
		if m.Version.From = ""; len(a.Moves) > 0 && a.URL != own.text {
			m.Version.From = a.URL
		}
		if m.Suspect = 0; !another {
			f.Validated = f.At
		}
		s.updateValidators(v)
		if own.shielded() {
			m.Version.Update(a.Status, a.Header)
		}
	} else if m.Suspect > 0 {
		m.Suspect += s.gap
	} else if a.Failure == policy.FailureSuspect {
		m.Suspect = 1 // from here on it is counted
	}
	s.updateRedirects(own.text, v)
	if a.Status == http.StatusOK {
		f.Site = v.site
	}
	if !a.Unsent() {
		f.Polls = f.Polls.with(status.Poll{At: f.At, Status: a.Status, Result: v.result, Bytes: a.Wire, Took: status.Seconds(a.At.Sub(a.Asked))})
	}
}

// plan decides when the feed is polled next, and returns the time until then.
func (s *state) plan(c *Cache, v classified, rules policy.Rules) time.Duration {
	a := v.answer
	if r, ok := errors.AsType[*redirected](a.Err); ok {
		// Something was sent, but not to the target of the redirect.
		a.NotBefore, a.Holder = a.At.Add(r.wait), policy.HintRedirect
	}
	d := policy.Decide(rules, s.feed.History, a, a.At, c.random())
	if s.unconditional != nil {
		d.Considered = append(d.Considered, *s.unconditional)
	}
	s.feed.History = s.feed.History.Decided(d)
	s.decide(d)
	s.notBefore = max(s.notBefore, c.elapsed()+d.NotBefore.Sub(a.At))
	if s.ended {
		return store.Ended
	}
	s.due = c.elapsed() + d.Next.Sub(a.At)
	return d.Next.Sub(a.At)
}

// unsent decides when a poll is tried again of which nothing reached the origin. That is not a
// failure of the feed. After a poll by hand, the time that was planned before counts.
func (s *state) unsent(c *Cache, a policy.Answer, planned time.Duration, rules policy.Rules) time.Duration {
	d := policy.Decide(rules, s.feed.History, a, a.At, c.random())
	s.decide(d)
	wait := d.Next.Sub(a.At)
	s.due = c.elapsed() + wait
	if rest := c.offline.wait(c.elapsed(), c.random()); rest > 0 {
		// It is not this host alone: when the network is back all go on soon.
		wait = rest
		s.override(c, wait, policy.HintOffline)
		s.feed.History.Unsent = 1 // nor does the feed's own wait grow, which counts again after a restart
	}
	if rest := planned - c.elapsed(); rest > 0 {
		// However often a person tries, the feed's own next try comes no later.
		wait, s.due = rest, planned
		s.feed.History.Unsent = max(s.feed.History.Unsent-1, 1)
	}
	return wait
}

// override replaces what was decided by something outside of the decision.
func (s *state) override(c *Cache, wait time.Duration, why string) {
	d := s.decision()
	if d.At.IsZero() {
		d.At = c.now().Round(0).UTC()
	}
	until := c.now().Add(wait)
	d.Interval, d.Winner, d.Next = until.Sub(d.At), why, until
	// A fresh slice: the old decision's terms belong to a published state.
	terms, holder := make([]policy.Term, 0, len(d.Considered)+1), policy.Term{Hint: why}
	for _, t := range d.Considered {
		if t.Hint == why {
			holder.Raw = t.Raw
		} else {
			t.Used = false
			terms = append(terms, t)
		}
	}
	holder.Seconds, holder.Used = int64((d.Interval+time.Second-1)/time.Second), true
	d.Considered = append(terms, holder)
	s.decide(d)
	s.due = c.elapsed() + wait
}

// leaseTime returns how long a claim must last: the poll with all that it may wait for, and after
// it the interval in force, back-off included.
func (s *state) leaseTime(rules policy.Rules) time.Duration {
	interval := max(rules.MinInterval, s.feed.History.Interval)
	if s.last.Winner != policy.HintPush { // which is no wish of the origin
		interval = max(interval, min(s.last.Pause, max(rules.MaxInterval, rules.MinInterval)))
	}
	return grace + rules.Timeout + policy.MaxHopWait + bodyTimeout + interval
}

// oneLine returns what is remembered of an error: one line, and not too long, as it may
// quote whatever an origin has sent.
func oneLine(err error) string {
	if err == nil {
		return ""
	}
	return feedurl.Short(err.Error(), 400)
}
