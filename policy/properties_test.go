// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// situation is all that a decision depends on.
type situation struct {
	rules   Rules
	history History
	answer  Answer
	chance  float64
}

func (s situation) decide() Decision {
	return Decide(s.rules, s.history, s.answer, s.chance)
}

func drawLength(t *rapid.T, name string, from, to time.Duration) time.Duration {
	return time.Duration(rapid.Int64Range(int64(from), int64(to)).Draw(t, name))
}

func drawRules(t *rapid.T) Rules {
	r := DefaultRules()
	r.MinInterval = drawLength(t, "min", time.Second, 50*time.Hour)
	r.DefaultInterval = drawLength(t, "default", time.Second, 50*time.Hour)
	r.UnvalidatedInterval = drawLength(t, "unvalidated", 0, 50*time.Hour)
	r.MaxInterval = drawLength(t, "max", time.Second, 50*time.Hour)
	r.Jitter = rapid.Float64Range(0, 1).Draw(t, "jitter")
	return r
}

func drawHints(t *rapid.T) Hints {
	h := Hints{
		SkipHours: rapid.SliceOfNDistinct(rapid.IntRange(0, 23), 0, 24, rapid.ID).Draw(t, "skipHours"),
		SkipDays:  rapid.SliceOfNDistinct(rapid.SampledFrom(allDays()), 0, 7, rapid.ID).Draw(t, "skipDays"),
		SyPeriod:  rapid.SampledFrom([]string{"", "hourly", "daily", "weekly", "monthly", "yearly"}).Draw(t, "syPeriod"),
		Complete:  rapid.IntRange(0, 9).Draw(t, "complete") == 0,
	}
	if rapid.Bool().Draw(t, "hasTTL") {
		h.TTL = ptr(rapid.Int64().Draw(t, "ttl"))
	}
	if rapid.Bool().Draw(t, "hasRule") {
		h.UpdateFrequency = &UpdateFrequency{
			RRule:   rapid.SampledFrom([]string{"FREQ=WEEKLY", "FREQ=DAILY;BYDAY=MO,FR", "FREQ=MONTHLY;BYDAY=-1FR", "x"}).Draw(t, "rule"),
			DTStart: rapid.SampledFrom([]string{"", "2026-01-01T10:00:00Z", "2030-01-01"}).Draw(t, "start"),
		}
	}
	return h
}

// seconds as they appear in header fields, sensible and not.
var drawnSeconds = rapid.OneOf(
	rapid.Map(rapid.Int64Range(-100, 3_000_000), func(n int64) string { return strconv.FormatInt(n, 10) }),
	rapid.SampledFrom([]string{"", "0", "1.5", "abc", "99999999999999999999", "Fri, 06 Mar 2026 12:00:00 GMT"}),
)

func drawHeader(t *rapid.T) http.Header {
	h := http.Header{}
	for _, field := range []struct{ name, prefix string }{
		{"Cache-Control", "max-age="}, {"Age", ""}, {"Expires", ""}, {"Retry-After", ""},
		{"X-RateLimit-Reset", ""}, {"RateLimit", `"a";r=0;t=`},
	} {
		if rapid.Bool().Draw(t, "has "+field.name) {
			h.Set(field.name, field.prefix+drawnSeconds.Draw(t, field.name))
		}
	}
	if rapid.Bool().Draw(t, "remaining") {
		h.Set("X-RateLimit-Remaining", "0.0")
	}
	if rapid.Bool().Draw(t, "validators") {
		h.Set("ETag", `"x"`)
	}
	return h
}

func drawSituation(t *rapid.T) situation {
	a := Answer{
		At:      noon.Add(drawLength(t, "at", 0, 14*day)),
		Asked:   noon.Add(-time.Second),
		Header:  drawHeader(t),
		Status:  200,
		Failure: FailureNone,
	}
	switch rapid.IntRange(0, 3).Draw(t, "kind") {
	case 1:
		a.Status = 304
	case 2:
		a.Status, a.Failure = 429, FailureRateLimited
	case 3:
		a.Status = 0
		a.Failure = rapid.SampledFrom([]Failure{FailureTimeout, FailureUnasked, FailureHeld}).Draw(t, "failure")
	}
	if rapid.Bool().Draw(t, "held") {
		a.NotBefore, a.Holder = a.At.Add(drawLength(t, "notBefore", -time.Hour, 9*day)), HintHostCooldown
	}
	h := History{
		Hints:    drawHints(t),
		Rhythm:   Rhythm{Median: drawLength(t, "median", 0, 1000*day), Newest: a.At.Add(-drawLength(t, "newest", 0, 100*day))},
		Failures: rapid.IntRange(0, 100).Draw(t, "failures"),
		Unheeded: rapid.IntRange(0, 4).Draw(t, "unheeded"),
		Interval: drawLength(t, "interval", 0, 8*day),
	}
	return situation{drawRules(t), h.Update(a, nil, false), a, rapid.Float64Range(0, 1).Draw(t, "chance")}
}

// These hold for every poll that was sent, whatever origins say.
func TestDecisionsKeepPromises(t *testing.T) {
	permitted := []string{HintRetryAfter, HintRateLimit, HintHostCooldown, HintURLCooldown, HintRedirect, HintSkipHours, HintSkipDays, HintComplete, HintFloor}
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		d := s.decide()
		hold, limit := RetryAfter(s.answer.Header, s.answer.At).Until, RateLimit(s.answer.Header, s.answer.At).Until
		if hold.IsZero() {
			hold = limit
		}
		if floor := s.answer.At.Add(s.rules.MinInterval); d.Next.Before(floor) || d.Next.Before(hold) || d.Next.Before(s.answer.NotBefore) {
			t.Fatalf("next at %v, before the floor %v, Retry-After or rate limit %v, or the host's pause %v", d.Next, floor, hold, s.answer.NotBefore)
		}
		hours, days := s.history.Hints.SkipHours, s.history.Hints.SkipDays
		long := true // a run of more than two days is left after 48 hours
		for back := range 3 {
			long = long && slices.Contains(days, d.Next.UTC().AddDate(0, 0, -back).Weekday().String())
		}
		if len(hours) < 24 && slices.Contains(hours, d.Next.UTC().Hour()) || len(days) < 7 && !long && slices.Contains(days, d.Next.UTC().Weekday().String()) {
			t.Fatalf("next at %v in skipped hours %v or days %v", d.Next, hours, days)
		}
		// Only what the operator has allowed exceeds max_interval.
		if most := max(s.rules.MaxInterval, s.rules.MinInterval); d.Interval > most && !slices.Contains(permitted, d.Winner) && !s.history.Hints.Complete {
			t.Fatalf("%s makes it %v of at most %v", d.Winner, d.Interval, most)
		}
		if !d.Next.Equal(d.At.Add(d.Interval)) || !slices.ContainsFunc(d.Considered, func(t Term) bool { return t.Hint == d.Winner && t.Used }) {
			t.Fatalf("the interval or the winner does not fit: %+v", d)
		}
		if again := s.decide(); !reflect.DeepEqual(d, again) {
			t.Fatalf("the same situation gave\n%+v and\n%+v", d, again)
		}
		s.chance = 0
		if least := s.decide(); d.Next.Before(least.Next) {
			t.Fatalf("with jitter %v, without %v", d.Next, least.Next)
		}
	})
}

// While a feed goes on failing, its polls do not come closer together.
func TestBackOffGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		s.chance, s.answer.Failure, s.answer.Status, s.answer.Header = 0, FailureTimeout, 0, nil
		s.history.Failures = min(s.history.Failures, 5)
		s.answer.NotBefore = time.Time{}
		s.history.Hints.SkipHours, s.history.Hints.SkipDays = nil, nil
		var last time.Duration
		for range 10 {
			s.history = s.history.Update(s.answer, nil, false)
			d := s.decide()
			if d.Interval < last {
				t.Fatalf("%v after %v", d.Interval, last)
			}
			last = d.Interval
		}
	})
}

// Extreme numbers do not panic, even in rules that were not validated.
func TestDecideWithAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		length := rapid.Map(rapid.Int64(), func(n int64) time.Duration { return time.Duration(n) })
		s.rules = Rules{
			MinInterval: length.Draw(t, "min"), DefaultInterval: length.Draw(t, "default"),
			UnvalidatedInterval: length.Draw(t, "unvalidated"), MaxInterval: length.Draw(t, "max"),
			Jitter: rapid.Float64().Draw(t, "jitter"),
		}
		s.history.Interval = length.Draw(t, "interval")
		s.history.Freshness = Freshness{Source: HintExpires, Lifetime: length.Draw(t, "lifetime"), Age: length.Draw(t, "age")}
		s.history.Failures = rapid.Int().Draw(t, "failures")
		s.answer.Failure = Failure(rapid.SampledFrom([]string{"", "x", "gone", "not-started"}).Draw(t, "failure"))
		s.chance = rapid.Float64().Draw(t, "chance")
		if d := s.decide(); d.Winner == "" {
			t.Fatalf("nothing wins: %+v", d)
		}
	})
}
