// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"testing"

	"github.com/feedpollard/pollard/policy"
)

func TestConditionOf(t *testing.T) {
	for _, tt := range []struct {
		name          string
		state, winner string
		status        int
		noFeed, due   bool
		want          string
	}{
		{name: "in good order", state: "fresh", winner: policy.HintTTL, status: 200, want: "fresh"},
		{name: "in good order after a 429", state: "fresh", winner: policy.HintTTL, status: 429, want: "fresh"},
		{name: "its host pauses", state: "fresh", winner: policy.HintHostCooldown, want: "waiting"},
		{name: "due", state: "due", winner: policy.HintRetryAfter, status: 429, due: true, want: "due"},
		{name: "gone", state: "gone", status: http.StatusGone, due: true, want: "gone"},
		{name: "a bare 429", state: "failing", winner: policy.HintBackOff, status: 429, want: "waiting"},
		{name: "a 429 with a wait", state: "failing", winner: policy.HintRetryAfter, status: 429, want: "waiting"},
		{name: "a 429 of long ago", state: "failing", winner: policy.HintBackOff, status: 429, due: true, want: "failing"},
		{name: "a 503", state: "failing", winner: policy.HintBackOff, status: 503, want: "failing"},
		{name: "what never was a feed", state: "failing", winner: policy.HintBackOff, status: 404, noFeed: true, want: "no-feed"},
		{name: "the same, due", state: "failing", winner: policy.HintBackOff, status: 200, noFeed: true, due: true, want: "no-feed"},
	} {
		if got := conditionOf(tt.state, tt.winner, tt.status, tt.noFeed, tt.due); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
