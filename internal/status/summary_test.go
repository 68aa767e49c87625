// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
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

func TestNotices(t *testing.T) {
	since := noon.Add(-2 * time.Hour)
	for _, tt := range []struct {
		trouble Trouble
		want    []string
	}{
		{Trouble{}, nil},
		{Trouble{Offline: true, OfflineSince: since}, []string{"No site can be reached since 10:00 UTC; readers get what is stored. Polls go on when the network is back."}},
		{Trouble{StoreAway: true, StoreAwaySince: since, Outage: "disk I/O error", DiskShort: true}, []string{
			"The store cannot be reached since 10:00 UTC (disk I/O error), so nothing is polled; readers get what is in memory. The log says more.",
			"The disk is nearly full, so new feeds are not stored: they are served from memory. What is stored stays."}},
		{Trouble{StoreDamaged: since}, []string{
			"Stored feeds are missing since 10:00 UTC, as the file of the store was damaged: each is fetched again when its min_interval has passed. The log says more."}},
		{Trouble{DiskOver: 3e9}, []string{"The configured feeds take 3.0 GB more than the line disk allows, so no other feed is stored."}},
	} {
		var got []string
		for _, notice := range tt.trouble.Notices(noon, nil) {
			got = append(got, notice.String())
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %q, want %q", tt.trouble, got, tt.want)
		}
	}
}

func TestNext(t *testing.T) {
	soon := noon.Add(12 * time.Minute)
	for _, tt := range []struct {
		f    Feed
		want string
	}{
		{Feed{State: StateFresh, NextPoll: soon, Winner: policy.HintMaxAge}, "poll in 12 min: max-age"},
		{Feed{State: StateFresh, NextPoll: noon.Add(3 * time.Millisecond), Winner: policy.HintDefault}, "poll now: default_interval"},
		{Feed{State: StateDue, NextPoll: noon, Winner: policy.HintMaxAge}, "poll now"},
		{Feed{State: StateDue, NextPoll: soon}, "poll in 12 min"},
		{Feed{State: StateFailing, NextPoll: soon, Winner: policy.HintBackOff, Failures: 3, LastPoll: noon, LastStatus: 503}, "poll in 12 min: 3 failures (503)"},
		{Feed{State: StateFailing, NextPoll: soon, Winner: policy.HintBackOff, Failures: 3, LastPoll: noon, LastStatus: 200, LastFailure: policy.FailureNotFeed}, "poll in 12 min: 3 failures (not a feed)"},
		{Feed{State: StateFailing, NextPoll: soon, Winner: policy.HintOffline, Failures: 1, LastPoll: noon, LastFailure: policy.FailureDNS}, "poll in 12 min: no network (dns)"},
		{Feed{State: StateWaiting, NextPoll: soon, Winner: policy.HintRetryAfter}, "poll in 12 min: Retry-After"},
		{Feed{State: StateWaiting, NextPoll: soon, Winner: policy.HintBackOff, Failures: 1, LastPoll: noon, LastStatus: 429}, "poll in 12 min: 1 failure (429)"},
		{Feed{State: StateGone, Winner: policy.HintGone}, "It is not polled any more."},
	} {
		if got := tt.f.Next(noon); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.f, got, tt.want)
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
		{Feed{State: StateFailing, Failures: 3, NextPoll: soon}, "The next poll is in 43 min."},
		{Feed{State: StateUnread, NextPoll: soon}, "It never gave a feed."},
		{Feed{State: StateFresh}, "No poll is planned."},
		{Feed{State: StateGone}, "It is not polled any more."},
		{Feed{State: StateFailing, Failures: 2, NextPoll: noon.Add(-time.Hour)}, "It is due for a poll."},
		{Feed{State: StateDue, NextPoll: noon.Add(time.Hour)}, "The next poll is in 1 h."},
	} {
		if got := tt.f.Headline(noon); got != tt.want {
			t.Errorf("%+v is described as %q, want %q", tt.f, got, tt.want)
		}
	}
}

func TestReadersSentence(t *testing.T) {
	for _, tt := range []struct {
		r    Readers
		want string
	}{
		{Readers{}, "No reader has asked for a feed yet."},
		{Readers{Readers: 1, Requests: 1, Bytes: 300}, "1 reader, 1 request, 300 B."},
		{Readers{Readers: 2, Judged: 2, Requests: 9, Bytes: 300}, "2 readers, 9 requests, 300 B. All of them send conditional requests."},
		{Readers{Readers: 19, Families: make([]Reader, 13), Requests: 26, Bytes: 300}, "19 readers of 13 kinds, 26 requests, 300 B."},
		{Readers{Readers: 2, Families: make([]Reader, 2), Requests: 9, Bytes: 300}, "2 readers, 9 requests, 300 B."},
		{Readers{Readers: 2, Judged: 1, Requests: 9, Bytes: 300}, "2 readers, 9 requests, 300 B. All who ask regularly send conditional requests."},
		{Readers{Readers: 41, Requests: 1000, Bytes: 1000, Unconditional: 12, UnconditionalBytes: 880}, "41 readers, 1,000 requests, 1.0 kB. 12 never send a conditional request; they take 88 % of the bytes."},
		{Readers{Readers: 2, Requests: 9, Bytes: 1000, Unconditional: 1, UnconditionalBytes: 1}, "2 readers, 9 requests, 1.0 kB. 1 never sends a conditional request; it takes less than 1 % of the bytes."},
		{Readers{Readers: 2, Judged: 2, Requests: 9, Refused: 1, Bytes: 300}, "2 readers, 9 requests, 300 B. All of them send conditional requests. 1 request was refused."},
	} {
		if got := tt.r.Sentence(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestSavingsSentence(t *testing.T) {
	for _, tt := range []struct {
		s    Savings
		want string
	}{
		{Savings{}, "No reader has asked for a feed yet."},
		{Savings{Total: Traffic{Requests: 1204331 + 5, Polls: 5, Served: 96e9 + 3, Fetched: 3}, Days: make([]DayTraffic, 30)}, "Sites were spared 1,204,331 requests and 96 GB in 30 days."},
		{Savings{Total: Traffic{Requests: 1, Polls: 4, Fetched: 9}, Days: make([]DayTraffic, 1)}, "Sites were spared 0 requests in 1 day."},
		{Savings{Total: Traffic{Requests: 9, Polls: 4}, Days: make([]DayTraffic, 20), Earlier: true}, "Sites were spared 5 requests in more than 20 days."},
		{Savings{Total: Traffic{Requests: 1, Polls: 4, Served: 4e6}, Days: make([]DayTraffic, 1)}, "Sites were spared 4.0 MB in 1 day."},
	} {
		if got := tt.s.Sentence(false); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		if got, want := tt.s.Sentence(true), strings.Replace(tt.want, "Sites were", "Your site was", 1); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestUptime(t *testing.T) {
	failed, unsent, good := Poll{Result: ResultFailed}, Poll{Result: ResultUnsent}, Poll{Result: ResultUnchanged}
	for want, polls := range map[string][]Poll{
		"0 % of 1 poll":            {failed},
		"none of 1 poll":           {unsent},
		"100 % of 1 poll":          {good},
		"50 % of the last 3 polls": {failed, unsent, good},
	} {
		if got := Uptime(polls) + " of " + Last(polls); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
