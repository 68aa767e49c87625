// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"
)

func TestSummarySentence(t *testing.T) {
	for _, tt := range []struct {
		feeds map[State]int64
		want  string
	}{
		{nil, "No feeds yet."},
		{map[State]int64{StateFresh: 1}, "1 feed, all fresh."},
		{map[State]int64{StateFresh: 1, StateUnread: 2}, "1 feed, all fresh."},
		{map[State]int64{StateUnread: 2}, "No feeds yet."},
		{map[State]int64{StateFresh: 1204}, "1,204 feeds, all fresh."},
		{map[State]int64{StateFresh: 209, StateWaiting: 3, StateFailing: 2}, "214 feeds. 2 are failing, 3 are waiting as asked, 209 are fresh."},
		{map[State]int64{StateFailing: 1, StateGone: 1}, "2 feeds. 1 is failing, 1 is gone for good."},
	} {
		if got := (Summary{Feeds: tt.feeds}).Sentence(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestHeadline(t *testing.T) {
	soon := noon.Add(43*time.Minute + 10*time.Second)
	for _, tt := range []struct {
		f    Feed
		want string
	}{
		{Feed{State: StateFresh, NextPoll: soon}, "The next poll is in 43 min."},
		{Feed{State: StateFailing, Failures: 1, NextPoll: soon}, "The last poll failed. The next poll is in 43 min."},
		{Feed{State: StateFailing, Failures: 3, NextPoll: soon}, "The last 3 polls failed. The next poll is in 43 min."},
		{Feed{State: StateWaiting, NextPoll: soon}, "The site has asked for fewer requests. The next poll is in 43 min."},
		{Feed{State: StateUnread, NextPoll: soon}, "It never gave a feed."},
		{Feed{State: StateFresh}, "No poll is planned."},
		{Feed{State: StateGone}, "It is not polled any more."},
		{Feed{State: StateFailing, Failures: 2, NextPoll: noon.Add(-time.Hour)}, "It is due for a poll."},
	} {
		if got := tt.f.Headline(noon); got != tt.want {
			t.Errorf("%+v is described as %q, want %q", tt.f, got, tt.want)
		}
	}
}
