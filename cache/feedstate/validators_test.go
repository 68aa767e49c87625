// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// doubted polls a feed whose origin has only 304s, and whole documents if it is asked
// unconditionally. It returns the numbers of those polls.
func doubted(polls int, gap time.Duration, ownSite bool, changed int) (unconditional []int) {
	s := State{Version: 1, Gap: gap}
	for n := 1; n <= polls; n++ {
		v := Classified{Result: status.ResultUnchanged, Answer: policy.Answer{Asked: time.Unix(1, 0), Status: 304}}
		if s.Unconditional = s.Doubtful(false, ownSite); s.Unconditional != nil {
			unconditional = append(unconditional, n)
			if v.Answer.Status = 200; n >= changed && !slices.ContainsFunc(unconditional[:len(unconditional)-1], func(before int) bool { return before >= changed }) {
				v.Result = status.ResultNew
			}
		}
		s.updateNotModified(v)
	}
	return unconditional
}

func TestDoubtful(t *testing.T) {
	const day, never = 24 * time.Hour, 1 << 30
	for _, test := range []struct {
		name    string
		gap     time.Duration
		polls   int
		own     bool
		changed int // from this poll on there is something new
		want    []int
	}{
		{"hourly", time.Hour, 900, false, never, []int{192, 576}},
		{"daily", day, 200, false, never, []int{9, 25, 57, 121, 185}},
		{"daily, and it had changed", day, 50, false, 20, []int{9, 25, 34, 50}},
		{"a finished show", 7 * day, 52, false, never, []int{9, 18, 27, 37, 47}},
		{"a site of this process", 10 * time.Minute, 20, true, never, []int{6, 12, 18}},
	} {
		if got := doubted(test.polls, test.gap, test.own, test.changed); fmt.Sprint(got) != fmt.Sprint(test.want) {
			t.Errorf("%s: unconditional are polls %v, want %v", test.name, got, test.want)
		}
	}
	s := State{Version: 1, Gap: 100 * day}
	s.Last.Confirmations = 100
	if byHand, own := s.Doubtful(true, false), s.Doubtful(true, true); byHand != nil || own == nil {
		t.Errorf("by hand: %v, at a site of this process: %v", byHand, own)
	}
	if s.Version = 0; s.Doubtful(true, true) != nil || s.Doubtful(false, false) != nil {
		t.Error("nothing is stored that could be wrong, and a poll has a reason to be unconditional")
	}
}
