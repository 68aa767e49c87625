// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"strings"
	"testing"
	"time"
)

func TestJudge(t *testing.T) {
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	full := State{Full: noon.Add(-time.Hour)}
	ask := poll(noon, "Reader/1", "192.0.2.1")
	with := func(r Request, change func(*Request)) Request { change(&r); return r }
	night := HoursOf([]int{22, 23, 0, 1, 12, 13})
	unconditional := Defence{Unconditional: 4 * time.Hour}
	strict := Defence{Rate{1, time.Hour}, 4 * time.Hour, true, true, true}
	for _, tc := range []struct {
		name    string
		defence Defence
		state   State
		request Request
		status  int
		wait    time.Duration
		reason  string
	}{
		{"no defence", Defence{}, full, ask, 0, 0, ""},
		{"first request", strict, State{}, with(ask, func(r *Request) { r.SkipHours = night }), 0, 0, ""},
		{"unconditional again", unconditional, full, ask, 429, 3 * time.Hour, "If-None-Match"},
		{"unconditional after the interval", unconditional, State{Full: noon.Add(-4 * time.Hour)}, ask, 0, 0, ""},
		{"conditional, current", strict, full, conditional(ask), 0, 0, ""},
		{"conditional, of an earlier version", unconditional, full, with(ask, func(r *Request) { r.Validators = ValidatorsEarlier }), 0, 0, ""},
		{"conditional, not compared", unconditional, full, with(ask, func(r *Request) { r.IfModifiedSince = "x" }), 0, 0, ""},
		{"invented validators", unconditional, full, with(ask, func(r *Request) { r.Validators = ValidatorsUnknown }), 429, 3 * time.Hour, "unconditional"},
		{"HEAD", unconditional, full, with(ask, func(r *Request) { r.Method = "HEAD" }), 0, 0, ""},
		{"a clock set back", unconditional, State{Full: noon.Add(1000 * time.Hour)}, ask, 429, 4 * time.Hour, ""},

		{"skip hours", Defence{SkipHours: true}, full, with(ask, func(r *Request) { r.SkipHours = night }), 429, 2 * time.Hour, "skipHours"},
		{"skip hours by a link", Defence{SkipHours: true}, full, with(ask, func(r *Request) { r.SkipHours, r.Referer = night, true }), 0, 0, ""},
		{"skip hours, conditional", Defence{SkipHours: true}, full, with(ask, func(r *Request) { r.SkipHours, r.Validators = night, ValidatorsEarlier }), 0, 0, ""},
		{"skip hours not defended", Defence{}, full, with(ask, func(r *Request) { r.SkipHours = night }), 0, 0, ""},
		{"outside of skip hours", Defence{SkipHours: true}, full, with(ask, func(r *Request) { r.SkipHours = HoursOf([]int{13}) }), 0, 0, ""},
		{"a wait that would end in skip hours", Defence{Unconditional: 4 * time.Hour, SkipHours: true}, full, with(ask, func(r *Request) { r.SkipHours = HoursOf([]int{15, 16}) }), 429, 5 * time.Hour, "skipHours"},
		{"a wait that ends after skip hours", Defence{Unconditional: 4 * time.Hour, SkipHours: true}, full, with(ask, func(r *Request) { r.SkipHours = HoursOf([]int{12}) }), 429, 3 * time.Hour, "unconditional"},

		{"no compression", Defence{RequireCompression: true}, State{}, with(ask, func(r *Request) { r.Compressible = false }), 406, 0, "gzip"},
		{"no compression, HEAD", Defence{RequireCompression: true}, State{}, with(ask, func(r *Request) { r.Compressible, r.Method = false, "HEAD" }), 0, 0, ""},
		{"no compression, 304", Defence{RequireCompression: true}, State{}, with(conditional(ask), func(r *Request) { r.Compressible = false }), 0, 0, ""},
		{"no name", Defence{RequireUserAgent: true}, State{}, with(ask, func(r *Request) { r.UserAgent = "" }), 403, 0, "User-Agent"},
		{"no name, not required", Defence{}, State{}, with(ask, func(r *Request) { r.UserAgent = "" }), 0, 0, ""},

		{"below the rate", Defence{MaxRate: Rate{4, time.Hour}}, State{Spent: noon.Add(45 * time.Minute)}, ask, 0, 0, ""},
		{"above the rate", Defence{MaxRate: Rate{4, time.Hour}}, State{Spent: noon.Add(50 * time.Minute)}, ask, 429, 5 * time.Minute, "too many requests"},
		{"above the rate, conditional", Defence{MaxRate: Rate{4, time.Hour}}, State{Spent: noon.Add(50 * time.Minute)}, with(ask, func(r *Request) { r.Validators = ValidatorsEarlier }), 429, 5 * time.Minute, ""},
		{"above the rate, a clock set back", Defence{MaxRate: Rate{4, time.Hour}}, State{Spent: noon.Add(1000 * time.Hour)}, ask, 429, 15 * time.Minute, ""},
		{"the longest wait counts", Defence{MaxRate: Rate{4, time.Hour}, Unconditional: 2 * time.Hour}, State{Full: full.Full, Spent: noon.Add(50 * time.Minute)}, ask, 429, time.Hour, "unconditional"},

		{"a person by headers", strict, full, with(ask, func(r *Request) { r.Browser, r.Compressible, r.UserAgent = true, false, "" }), 0, 0, ""},
		{"a person by name", strict, full, with(ask, func(r *Request) {
			r.UserAgent, r.Compressible = "Mozilla/5.0 (X11; Linux x86_64; rv:124.0) Gecko/20100101 Firefox/124.0", false
		}), 0, 0, ""},
		{"a browser's name too often", strict, State{Full: full.Full, Shown: asPerson}, with(ask, func(r *Request) {
			r.UserAgent, r.Compressible = "Mozilla/5.0 (X11; Linux x86_64; rv:124.0) Gecko/20100101 Firefox/124.0", false
		}), 406, 0, "compressed"},

		{"at the end of the wait told", unconditional, State{Full: noon.Add(-time.Minute), Told: noon.Add(-time.Minute)}, ask, 0, 0, ""},
		{"long after the wait told", unconditional, State{Full: noon.Add(-time.Minute), Told: noon.Add(-time.Hour)}, ask, 429, 239 * time.Minute, ""},
		{"a wait told stays", unconditional, State{Full: noon, Told: noon.Add(time.Minute)}, ask, 429, time.Minute, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := tc.defence.Judge(ParseAgent(tc.request.UserAgent), tc.state, &tc.request)
			if v.Status != tc.status || !strings.Contains(v.Reason, tc.reason) || (v.Reason != "") != (v.Status != 0) {
				t.Fatalf("%+v, want %d %q", v, tc.status, tc.reason)
			}
			if tc.status == 429 && v.Until.Sub(noon) != tc.wait {
				t.Errorf("wait %v, want %v", v.Until.Sub(noon), tc.wait)
			}
			if want := tc.status == 429 && tc.state.Told.After(noon); v.Early != want {
				t.Errorf("early %v", v.Early)
			}
		})
	}
}

func TestRetryAfterIsRoundedUp(t *testing.T) {
	now := start()
	for wait, want := range map[time.Duration]int64{time.Nanosecond: 1, time.Second: 1, 1500 * time.Millisecond: 2, time.Hour: 3600} {
		if got := (Verdict{Until: now.Add(wait)}).RetryAfter(now); got != want {
			t.Errorf("%v: %d s", wait, got)
		}
	}
}
