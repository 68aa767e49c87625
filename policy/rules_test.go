// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Rules)
		wrong  string // the line that is at fault; empty: none is
	}{
		{"the defaults", func(*Rules) {}, ""},
		{"a floor above the cap", func(r *Rules) { r.MinInterval = 48 * time.Hour }, ""},
		{"no floor", func(r *Rules) { r.MinInterval = 0 }, ""},
		{"no jitter", func(r *Rules) { r.Jitter = 0 }, ""},
		{"negative floor", func(r *Rules) { r.MinInterval = -1 }, "min_interval"},
		{"negative default", func(r *Rules) { r.DefaultInterval = -1 }, "default_interval"},
		{"a default of ages", func(r *Rules) { r.DefaultInterval = math.MaxInt64 }, "default_interval"},
		{"negative cap", func(r *Rules) { r.MaxInterval = -1 }, "max_interval"},
		{"negative unvalidated", func(r *Rules) { r.UnvalidatedInterval = -1 }, "unvalidated_interval"},
		{"nothing at all", func(r *Rules) { r.MinInterval, r.DefaultInterval = 0, 0 }, "min_interval"},
		{"jitter of 1000 %", func(r *Rules) { r.Jitter = 10 }, "jitter"},
		{"negative jitter", func(r *Rules) { r.Jitter = -0.1 }, "jitter"},
		{"jitter of no size", func(r *Rules) { r.Jitter = math.NaN() }, "jitter"},
		{"no timeout", func(r *Rules) { r.Timeout = 0 }, "timeout"},
		{"no body", func(r *Rules) { r.MaxBody = 0 }, "max_body"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := DefaultRules()
			test.change(&r)
			err := r.Validate()
			switch {
			case test.wrong == "" && err != nil:
				t.Error(err)
			case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong) || !strings.Contains(err.Error(), "write")):
				t.Errorf("%v, want what to write for %s", err, test.wrong)
			}
		})
	}
}

func TestStricter(t *testing.T) {
	a, b := DefaultRules(), DefaultRules()
	a.MinInterval, a.MaxBody, a.Jitter = 2*time.Hour, 1<<20, 0.5
	b.MaxInterval, b.Timeout = 48*time.Hour, 10*time.Second
	want := DefaultRules()
	want.MinInterval, want.MaxInterval, want.Jitter = 2*time.Hour, 48*time.Hour, 0.5
	if got := a.Stricter(b); got != want || b.Stricter(a) != want || want.Stricter(want) != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
