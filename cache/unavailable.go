// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// Unavailable says that there is no version of a feed to serve.
type Unavailable struct {
	Status     int            // for the reader: 403, 410, 502, 503 or 504
	Reason     string         // one line, for people
	RetryAfter time.Duration  // when to come back; 0: never mind
	Failure    policy.Failure // of the last poll, where that is the reason
}

func (u *Unavailable) Error() string { return u.Reason }

// unavailable tells a reader why a cold feed has nothing for it.
func (f *Feed) unavailable(s *state, now time.Time) error {
	l := s.memo.Last
	u := &Unavailable{Status: status(l.Failure), Failure: l.Failure, Reason: l.Error, RetryAfter: max(s.Next.Sub(now), time.Second)}
	switch {
	case s.Version != 0: // there is one, but the store does not give it
		u.Status, u.Failure, u.Reason, u.RetryAfter = http.StatusServiceUnavailable, policy.FailureStore, "the store cannot be read at present", storeRetry
	case l.At.IsZero() && s.memo.Decision.Winner != "":
		u.Reason = fmt.Sprintf("the feed's first poll has to wait: %s", s.memo.Decision.Winner)
	case l.At.IsZero():
		u.Reason = "the feed's first poll has not been answered yet"
	case l.Failure == policy.FailureNone:
		u.Reason = "the stored version was lost; the feed's next poll fetches it anew"
	case u.Reason == "":
		u.Reason = "the feed's last poll failed: " + string(l.Failure)
	}
	if u.Status == http.StatusGone || u.Status == http.StatusForbidden && l.Failure != policy.FailureAddress {
		u.RetryAfter = 0
	}
	return u
}

// status is the answer to a reader while a feed has no version. An origin's own
// 404 or 403 is not passed on: readers unsubscribe on less.
func status(failure policy.Failure) int {
	switch failure {
	case policy.FailureGone:
		return http.StatusGone
	case policy.FailureAddress:
		return http.StatusForbidden
	case policy.FailureTimeout:
		return http.StatusGatewayTimeout
	case policy.FailureNone, policy.FailureNotStarted, policy.FailureRateLimited, policy.FailureStore:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadGateway
}
