// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/feedpollard/pollard/policy"
)

// adoptAfter is how long a permanent redirect must have held before polls go to
// its target at once. Broken sites redirect everything for a day.
const adoptAfter = 7 * 24 * time.Hour

// learnMoves keeps track of permanent redirects. Only the leading permanent part
// of a chain counts, only a good answer confirms it, and a temporary redirect is
// never remembered (RFC 9110 section 15.4).
func (m *memo) learnMoves(own string, v verdict) {
	if !v.good() {
		// A feed that fails at its new address is asked for at its own again.
		if m.Effective != "" && m.History.Failures >= 3 {
			m.Effective, m.Moved = "", moved{}
		}
		return
	}
	to := ""
	for _, move := range v.answer.Moves {
		if move.Status != http.StatusMovedPermanently && move.Status != http.StatusPermanentRedirect {
			break
		}
		to = move.To
	}
	canonical, err := Canonical(to)
	switch {
	case err != nil: // among them: there was none
		m.Moved = moved{}
	case to != m.Moved.To:
		m.Moved = moved{To: to, Since: v.answer.At}
	case v.answer.At.Sub(m.Moved.Since) >= adoptAfter:
		m.Effective, m.Moved = canonical, moved{}
		if canonical == own {
			m.Effective = "" // it has come home
		}
	}
}

// hop lets a poll follow a redirect unless it leads to where another feed's polls
// go: that would be a second poll of that URL in its interval.
func (f *Feed) hop(target string) error {
	canonical, err := Canonical(target)
	if err != nil {
		return err
	}
	if other := f.cache.poller(canonical, f); other != nil {
		return &delegated{other, canonical}
	}
	return nil
}

// delegated says that a poll has come to a URL that another feed polls.
type delegated struct {
	to  *Feed
	url string
}

func (d *delegated) Error() string {
	return "redirected to another feed of this gateway, " + policy.Redact(d.to.url)
}

// delegate completes an answer that ended in a redirect to another feed with what
// that feed has, after its own poll where one is due.
func (f *Feed) delegate(ctx context.Context, s *state, a policy.Answer, trail []*Feed) policy.Answer {
	var d *delegated
	if !errors.As(a.Err, &d) {
		a.Failure = policy.FailureRedirect
		return a
	}
	// Two feeds that redirect to each other must not wait for each other. Where each
	// stands in for the other by chance of earlier redirects, the next poll finds out.
	if slices.Contains(trail, d.to) {
		f.cache.finals.CompareAndDelete(d.url, d.to)
		a.Failure, a.Err = policy.FailureRedirect, fmt.Errorf("feeds redirect to each other: %s and %s", policy.Redact(f.url), policy.Redact(d.to.url))
		return a
	}
	sent := len(a.Moves) > 0
	a = d.to.lend(ctx, a, append(slices.Clone(trail), f))
	if a.Failure == policy.FailureNotStarted && sent {
		// The redirect was asked for, whatever became of the feed that it leads to.
		earliest := a.At.Add(f.rules().MinInterval)
		if earliest.After(a.NotBefore) {
			a.NotBefore = earliest
		}
	}
	known := s.memo.Version
	if a.Failure == policy.FailureNone && s.Version != 0 && known.Size == len(a.Body) && known.Hash == xxhash.Sum64(a.Body) {
		// What we have is what the other feed has: that validates it as a 304 does.
		a.Status, a.Body = http.StatusNotModified, nil
	}
	return a
}

// standIn answers for a poll without a request: where permanent redirects have
// brought two feeds to one URL, or a feed is new whose URL another feed's polls
// already end at, one poll serves both.
func (f *Feed) standIn(ctx context.Context, s *state, target string, trail []*Feed) (policy.Answer, bool) {
	other := f.cache.poller(target, f)
	if other == nil && s.Version == 0 && s.Token <= 1 {
		other = f.predecessor(ctx)
	}
	if other == nil {
		return policy.Answer{}, false
	}
	now := f.cache.now()
	return f.delegate(ctx, s, policy.Answer{
		Asked: now, At: now, URL: target,
		Failure: policy.FailureDelegated, Err: &delegated{other, target},
	}, trail), true
}

// predecessor is the feed whose polls have ended at the URL of a new one, if they
// have done so within its interval. Where its next poll is due, the new feed makes
// its own: that one will lead here.
func (f *Feed) predecessor(ctx context.Context) *Feed {
	other := f.cache.finals.of(f.url, f)
	if other == nil {
		return nil
	}
	fl := other.underWay()
	if fl != nil && !fl.wait(ctx, patience, f.cache.now()) {
		return other // it may be at our URL just now
	}
	if other.state.Load().due(f.cache.now()) {
		return nil
	}
	return other
}

// lend fills an answer with the feed's own version, after a poll of its own where
// that is due.
func (f *Feed) lend(ctx context.Context, a policy.Answer, trail []*Feed) policy.Answer {
	if now := f.cache.now(); f.state.Load().due(now) {
		if fl, _ := f.board(false, trail...); fl != nil {
			fl.wait(ctx, patience, now)
		}
	}
	s := f.state.Load()
	a.At = f.cache.now()
	if s.memo.Last.Failure == policy.FailureGone {
		a.Failure, a.Status = policy.FailureGone, s.memo.Last.Status
		a.Err = fmt.Errorf("redirected to %s, which is gone", policy.Redact(f.url))
		return a
	}
	if s.Next.After(a.NotBefore) {
		a.NotBefore, a.Holder = s.Next, "other-feed"
	}
	v := f.content(ctx, s)
	if v == nil {
		a.Failure = s.memo.Last.Failure
		if a.Failure == policy.FailureNone {
			a.Failure = policy.FailureNotStarted
		}
		a.Err = fmt.Errorf("%s has no version yet: %s", policy.Redact(f.url), s.memo.Last.Error)
		return a
	}
	a.Failure, a.Err, a.Status = policy.FailureNone, nil, http.StatusOK
	a.URL, a.Body = f.target(s), v.identity()
	if s.memo.Final != "" {
		a.URL = s.memo.Final
	}
	a.Header = lentHeader(a.Header, s, a.URL)
	return a
}

// lentHeader is the header of a feed's version that is lent to another feed, after
// a redirect with a header of its own (nil: there was none). Of that, what asks for
// a pause goes on to count.
func lentHeader(redirect http.Header, s *state, url string) http.Header {
	h := http.Header{"Content-Type": {s.memo.Version.ContentType}}
	for _, name := range []string{
		"Date", "Retry-After", "Ratelimit", "Ratelimit-Policy", "Ratelimit-Remaining", "Ratelimit-Reset",
		"X-Ratelimit-Remaining", "X-Ratelimit-Reset",
	} {
		if values := redirect.Values(name); len(values) > 0 {
			h[name] = values
		}
	}
	// Without validators the feed would count as one that costs its origin a whole
	// download each time.
	if v := s.memo.Validators; v.URL == url {
		h["Etag"], h["Last-Modified"] = field(v.ETag), field(v.LastModified)
	}
	return h
}

// field is the lines of a header field: none where there is no value.
func field(value string) []string {
	if value == "" {
		return nil
	}
	return []string{value}
}
