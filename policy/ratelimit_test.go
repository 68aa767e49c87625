// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strconv"
	"testing"
	"time"
)

func TestRateLimit(t *testing.T) {
	epoch := strconv.FormatInt(noon.Add(time.Hour).Unix(), 10)
	for _, test := range []struct {
		name   string
		fields []string
		wait   time.Duration // 0: no hold
	}{
		{"absent", nil, 0},
		// The draft's structured fields.
		{"exhausted", []string{"RateLimit", `"default";r=0;t=60`}, time.Minute},
		{"not exhausted", []string{"RateLimit", `"default";r=1;t=60`}, 0},
		{"below zero", []string{"RateLimit", `"default";r=-1;t=60`}, time.Minute},
		{"the worst of several", []string{"RateLimit", `"a";r=0;t=60, "b";r=0;t=600, "c";r=5;t=6000`}, 10 * time.Minute},
		{"several lines", []string{"RateLimit", `"a";r=0;t=60`, "RateLimit", `"b";r=0;t=600`}, 10 * time.Minute},
		{"without a reset", []string{"RateLimit", `"a";r=0`}, 0},
		{"malformed", []string{"RateLimit", `"a";r=0;t=60, "b;r=0`}, 0},
		{"one member malformed", []string{"RateLimit", `"a";r=0;t=60, "b"`}, 0},
		{"r is no number", []string{"RateLimit", `"a";r=zero;t=60`}, 0},
		{"t is no number", []string{"RateLimit", `"a";r=0;t="60"`}, 0},
		{"t is negative", []string{"RateLimit", `"a";r=0;t=-60`}, 0},
		{"an inner list", []string{"RateLimit", `("a");r=0;t=60`}, 0},
		{"draft 07", []string{"RateLimit", `limit=100, remaining=0, reset=3600`}, time.Hour},
		{"draft 07 on two lines", []string{"RateLimit", `limit=100, remaining=0`, "RateLimit", `reset=60`}, time.Minute},
		{"draft 07, malformed", []string{"RateLimit", `limit=100, remaining=none, reset=3600`}, 0},
		{"draft 07, a list for a number", []string{"RateLimit", `limit=100, remaining=(0), reset=3600`}, 0},
		{"capped", []string{"RateLimit", `"a";r=0;t=999999999999999`}, 7 * day},
		{"t of 0", []string{"RateLimit", `"a";r=0;t=0`}, 0},
		// The older fields.
		{"RateLimit-Remaining", []string{"RateLimit-Remaining", "0", "RateLimit-Reset", "60"}, time.Minute},
		{"X-RateLimit", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "60"}, time.Minute},
		{"Reddit", []string{"x-ratelimit-remaining", "0.0", "x-ratelimit-reset", "59.5", "x-ratelimit-used", "1"}, time.Minute},
		{"half a request left", []string{"X-RateLimit-Remaining", "0.5", "X-RateLimit-Reset", "60"}, 0},
		{"epoch", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch}, time.Hour},
		{"epoch of a clock 3 h ahead", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch, "Date", "Wed, 04 Mar 2026 12:30:00 GMT"}, 30 * time.Minute},
		{"epoch in milliseconds", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", epoch + "000"}, time.Hour},
		{"epoch in the past", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "1000000001"}, 0},
		{"a long reset is no epoch", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "500000"}, 500000 * time.Second},
		{"a date", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "Wed, 04 Mar 2026 13:00:00 GMT"}, time.Hour},
		{"a date of ISO 8601", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "2026-03-04T13:00:00Z"}, time.Hour},
		{"X-Rate-Limit", []string{"X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", "60"}, time.Minute},
		{"by the policy", []string{"RateLimit", `"a";r=0`, "RateLimit-Policy", `"a";q=10;w=7200`}, 2 * time.Hour},
		{"a reset goes before the policy", []string{"RateLimit", `"a";r=0;t=60`, "RateLimit-Policy", `"a";q=10;w=7200`}, time.Minute},
		{"a policy without a window", []string{"RateLimit", `"a";r=0`, "RateLimit-Policy", `"a";q=10`}, 0},
		{"no reset", []string{"X-RateLimit-Remaining", "0"}, 0},
		{"reset is no number", []string{"X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "soon"}, 0},
		{"NaN", []string{"X-RateLimit-Remaining", "NaN", "X-RateLimit-Reset", "60"}, 0},
		{"two lines", []string{"X-RateLimit-Remaining", "5", "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "120", "X-RateLimit-Reset", "60"}, 2 * time.Minute},
		{"the worst family", []string{"RateLimit", `"a";r=0;t=60`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "600"}, 10 * time.Minute},
		{"one family malformed", []string{"RateLimit", `???`, "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "600"}, 10 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			checkHold(t, RateLimit(header(test.fields...), noon), test.wait, test.wait == 0 && len(test.fields) > 0)
		})
	}
}

func FuzzRateLimit(f *testing.F) {
	f.Add(`"a";r=0;t=60`, "0.0", "60")
	f.Add(`("a" "b");r=0`, "-1", "1000000001")
	f.Add(`"a";r=?1;t=:AA==:`, "0", "99999999999999999999")
	f.Fuzz(func(t *testing.T, limit, remaining, reset string) {
		hold := RateLimit(header("RateLimit", limit, "X-RateLimit-Remaining", remaining, "X-RateLimit-Reset", reset), noon)
		if !hold.Until.IsZero() && (!hold.Until.After(noon) || hold.Until.After(noon.Add(maxHold))) {
			t.Errorf("held until %v", hold.Until)
		}
	})
}
