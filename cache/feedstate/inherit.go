// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// Inherit makes the record of a shielded feed out of the one under an earlier form of its origin
// block. It is due at once, or after the pause that the origin has asked for, and its next poll is
// unconditional, as the validators belong to the earlier origin.
func Inherit(r store.Record, key string) (store.Record, error) {
	s := Of(r, 0)
	m, last := &s.Feed, &s.Last
	s.saved, m.Inherited, m.Validators, m.Considered = 0, true, policy.Validators{}, nil
	if r.NotBefore <= 0 {
		m.History.Failures, last.Failure, last.Error, last.Result = 0, policy.FailureNone, "", status.ResultUnchanged
		last.Decided, last.Pause, last.Winner = time.Time{}, 0, ""
	}
	r.ID, r.URL, r.In, r.State = store.IDOf(key), key, max(0, r.NotBefore), s.StoreState(false)
	var err error
	if r.PollState, err = s.EncodePollState(); err == nil {
		r.FeedState, err = s.EncodeFeedState()
	}
	return r, err
}

// Withheld reports whether the version is inherited and must not be served yet: only after a failure
// that may pass it stands for what the origin block would send.
func (s *State) Withheld() bool { return s.Feed.Inherited && s.Feed.History.Failures == 0 }

// UpdateInherited ends the inheritance if an answer shows what the origin block sends. It reports
// whether the version must be dropped.
func (s *State) UpdateInherited(v Classified) (drop bool) {
	if !s.Feed.Inherited || v.Answer.Unsent() || !v.Good() && (v.Answer.Passing() || v.Answer.Status == http.StatusTooManyRequests) {
		return false
	}
	s.Feed.Inherited = false
	return !v.Good()
}
