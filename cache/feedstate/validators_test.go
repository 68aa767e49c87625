// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"fmt"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// doubted polls a feed whose origin has only 304s, and whole documents if it is asked
// unconditionally. It returns the numbers of those polls.
func doubted(polls int, gap time.Duration, ownSite bool) (unconditional []int) {
	s := State{Version: 1, Gap: gap}
	for n := 1; n <= polls; n++ {
		v := Classified{Result: status.ResultUnchanged, Answer: policy.Answer{Asked: time.Unix(1, 0), Status: 304}}
		if s.Unconditional = s.WhyUnconditional(false, ownSite); s.Unconditional != nil {
			unconditional, v.Answer.Status = append(unconditional, n), 200
		}
		s.updateUnconditional(v)
	}
	return unconditional
}

func TestDoubtful(t *testing.T) {
	const day = 24 * time.Hour
	for _, test := range []struct {
		name  string
		gap   time.Duration
		polls int
		own   bool
		want  []int
	}{
		{"hourly", time.Hour, 600, false, []int{192, 384, 576}},
		{"daily", day, 30, false, []int{8, 16, 24}},
		{"a site of this process", 10 * time.Minute, 20, true, []int{6, 12, 18}},
	} {
		if got := doubted(test.polls, test.gap, test.own); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: unconditional are polls %v, want %v", test.name, got, test.want)
		}
	}
	s := State{Version: 1, Gap: 100 * day}
	if byHand, own := s.WhyUnconditional(true, false), s.WhyUnconditional(true, true); byHand != nil || own == nil {
		t.Errorf("by hand: %v, at a site of this process: %v", byHand, own)
	}
	if s.Version = 0; s.WhyUnconditional(true, true) != nil || s.WhyUnconditional(false, false) != nil {
		t.Error("nothing is stored that could be wrong, and a poll has a reason to be unconditional")
	}
}

// A site that answers conditional requests with an error gives its feed again: to the next poll after a
// 412, and to one a day after three other errors.
func TestErrorsToConditionalRequests(t *testing.T) {
	for code, within := range map[int]time.Duration{412: 25 * time.Hour, 400: 5 * 24 * time.Hour, 403: 5 * 24 * time.Hour, 500: 5 * 24 * time.Hour} {
		l, entries := newLife(t), 1
		l.poll(given(origintest.Feed(entries, ""), "ETag", `"1"`))
		start := l.now
		for l.state.Feed.Version.Entries == 1 && l.now-start < within {
			if l.next().WhyUnconditional(false, false) != nil {
				l.poll(given(origintest.Feed(2, ""), "ETag", `"2"`))
			} else {
				l.poll(failed(code, policy.FailureStatus))
			}
		}
		if l.state.Feed.Version.Entries == 1 {
			t.Errorf("%d: no poll of %s was unconditional", code, within)
		}
	}
	l, tried := newLife(t), 0
	l.poll(given(origintest.Feed(1, ""), "ETag", `"1"`))
	for start := l.now; l.now-start < 10*24*time.Hour; {
		if l.next().WhyUnconditional(true, false) == nil && l.state.Last.Failure != policy.FailureNone {
			t.Fatal("by hand, the poll after an error is conditional")
		}
		if l.next().WhyUnconditional(false, false) != nil {
			tried++
		}
		l.poll(failed(500, policy.FailureStatus))
	}
	if tried < 5 || tried > 10 {
		t.Errorf("%d polls of ten days were unconditional, want one a day", tried)
	}
}
