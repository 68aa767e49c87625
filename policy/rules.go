// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"time"
)

// longest is the longest interval that a setting may have.
const longest = 366 * 24 * time.Hour

// Validate returns an error that names the wrong setting as the operator writes it, and
// the valid values. A min_interval above max_interval is valid: the floor wins.
func (r Rules) Validate() error {
	var problems []error
	wrong := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf(format, args...))
	}
	for _, interval := range []struct {
		name    string
		length  time.Duration
		example string
	}{
		{"min_interval", r.MinInterval, "1h"},
		{"default_interval", r.DefaultInterval, "1h"},
		{"unvalidated_interval", r.UnvalidatedInterval, "24h"},
		{"max_interval", r.MaxInterval, "24h"},
	} {
		switch {
		case interval.length < 0:
			wrong("%s is negative (%v): write a length such as %s", interval.name, interval.length, interval.example)
		case interval.length > longest:
			wrong("%s is longer than a year (%v): write at most 366d", interval.name, interval.length)
		}
	}
	if r.MinInterval == 0 && (r.DefaultInterval == 0 || r.MaxInterval == 0) {
		wrong("nothing keeps polls apart: write a min_interval, or a default_interval and a max_interval, of more than 0")
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) {
		wrong("jitter is %v%%: write a share from 0 to 100%%, such as 10%%", r.Jitter*100)
	}
	if r.Timeout <= 0 {
		wrong("timeout is %v: write a length of more than 0, such as 30s", r.Timeout)
	}
	if r.MaxBody <= 0 {
		wrong("max_body is %d bytes: write a size of more than 0, such as 20MiB", r.MaxBody)
	}
	return errors.Join(problems...)
}

// Stricter merges the rules of two handlers that name the same feed. The longer of each
// interval and the larger jitter apply. The larger Timeout and MaxBody apply as well: they
// do not concern the origin, and one handler's larger setting must not be lost to the
// other's default.
func (r Rules) Stricter(o Rules) Rules {
	return Rules{
		MinInterval:         max(r.MinInterval, o.MinInterval),
		DefaultInterval:     max(r.DefaultInterval, o.DefaultInterval),
		UnvalidatedInterval: max(r.UnvalidatedInterval, o.UnvalidatedInterval),
		MaxInterval:         max(r.MaxInterval, o.MaxInterval),
		Jitter:              max(r.Jitter, o.Jitter),
		Timeout:             max(r.Timeout, o.Timeout),
		MaxBody:             max(r.MaxBody, o.MaxBody),
		OwnSite:             r.OwnSite && o.OwnSite,
	}
}

// ceiling returns the longest interval: max_interval, or a min_interval above it.
func (r Rules) ceiling() time.Duration { return max(r.MinInterval, r.MaxInterval) }
