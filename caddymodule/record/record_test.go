// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/policy"
)

func TestStateOf(t *testing.T) {
	soon, past := time.Now().Add(time.Hour), time.Now().Add(-time.Hour)
	for _, tt := range []struct {
		name   string
		glance cache.Glance
		want   pages.State
	}{
		{"in good order", cache.Glance{State: "fresh", NextPoll: soon, Winner: policy.HintTTL, Status: 200}, pages.StateFresh},
		{"in good order after a 429", cache.Glance{State: "fresh", NextPoll: soon, Winner: policy.HintTTL, Status: 429}, pages.StateFresh},
		{"its host pauses", cache.Glance{State: "fresh", NextPoll: soon, Winner: policy.HintHostCooldown}, pages.StateWaiting},
		{"due", cache.Glance{State: "due", NextPoll: past, Winner: policy.HintRetryAfter, Status: 429}, pages.StateDue},
		{"gone", cache.Glance{State: "gone", Status: 410}, pages.StateGone},
		{"a bare 429", cache.Glance{State: "failing", NextPoll: soon, Winner: policy.HintBackOff, Status: 429}, pages.StateWaiting},
		{"a 429 with a wait", cache.Glance{State: "failing", NextPoll: soon, Winner: policy.HintRetryAfter, Status: 429}, pages.StateWaiting},
		{"a 429 of long ago", cache.Glance{State: "failing", NextPoll: past, Winner: policy.HintBackOff, Status: 429}, pages.StateFailing},
		{"a 503", cache.Glance{State: "failing", NextPoll: soon, Winner: policy.HintBackOff, Status: 503}, pages.StateFailing},
		{"a page that names feeds", cache.Glance{State: "failing", NextPoll: soon, Winner: policy.HintBackOff, Status: 200, Site: true}, pages.StateSite},
		{"the same, due", cache.Glance{State: "failing", NextPoll: past, Winner: policy.HintBackOff, Status: 200, Site: true}, pages.StateSite},
	} {
		if got := stateOf(&tt.glance); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
