// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package config parses what the Caddyfiles of several modules share: the lines of a
// policy, durations, sizes, addresses and host patterns.
package config

import (
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/policy"
)

// Policy is how often feeds may be polled, and how much a poll may cost. It can
// be set for all feeds (in the app), for a host and for one feed. A field that a feed
// does not set comes from its host, or else from the app.
type Policy struct {
	// The least time between two polls of a feed, whatever its hints say. Default: `1h`.
	MinInterval caddy.Duration `json:"min_interval,omitempty"`

	// The interval of a feed without hints and with too few dated entries to derive
	// one. Default: `1h`.
	DefaultInterval caddy.Duration `json:"default_interval,omitempty"`

	// The least time between two polls of a feed that has no ETag, no Last-Modified and
	// no explicit hint, so that each poll costs a whole download. If its entries have dates
	// and come more often, it is the time between them, but at least 4 hours. Default: `24h`.
	UnvalidatedInterval caddy.Duration `json:"unvalidated_interval,omitempty"`

	// The longest interval that hints and the backoff after failures can cause.
	// Retry-After is capped at 7 days instead. Default: `24h`, or `min_interval` if that
	// is longer.
	MaxInterval caddy.Duration `json:"max_interval,omitempty"`

	// The largest fraction of an interval that is added to it at random, from 0 (none)
	// to 1, so that feeds are not all polled at the same time. The Caddyfile takes a
	// percentage, or 0. Default: `0.1`, which is 10%.
	Jitter *float64 `json:"jitter,omitempty"`

	// The longest time that a poll may take, including redirects. Default: `30s`.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// The largest feed accepted, in bytes after decoding. The Caddyfile takes a
	// size such as `20MiB`. Default: 15 MiB, as in Miniflux.
	MaxBody int64 `json:"max_body,omitempty"`
}

// Lines returns the Caddyfile lines that set the policy.
func (p *Policy) Lines() Lines {
	return Lines{
		"min_interval":         {Read: DurationLine(&p.MinInterval)},
		"default_interval":     {Read: DurationLine(&p.DefaultInterval)},
		"unvalidated_interval": {Read: DurationLine(&p.UnvalidatedInterval)},
		"max_interval":         {Read: DurationLine(&p.MaxInterval)},
		"timeout":              {Read: DurationLine(&p.Timeout)},
		"max_body":             {Read: SizeLine(&p.MaxBody)},
		"jitter":               {Read: ParsedLine(&p.Jitter, Pointer(Replaced(ParsePercentage)), "a percentage such as 10%, or 0")},
	}
}

// Check returns an error if a value is invalid.
func (p Policy) Check() error {
	for _, f := range []struct {
		name  string
		value caddy.Duration
	}{
		{"min_interval", p.MinInterval},
		{"default_interval", p.DefaultInterval},
		{"unvalidated_interval", p.UnvalidatedInterval},
		{"max_interval", p.MaxInterval},
		{"timeout", p.Timeout},
	} {
		if f.value < 0 {
			return fmt.Errorf("%s: %s is negative", f.name, FormatDuration(f.value))
		}
	}
	if p.MaxBody < 0 {
		return fmt.Errorf("max_body: %d is negative", p.MaxBody)
	}
	if j := p.Jitter; j != nil && (!(*j >= 0) || *j > 1) {
		return fmt.Errorf("jitter: %v is not between 0 and 1 (100%%)", *j)
	}
	if p.MaxInterval > 0 && p.MinInterval > p.MaxInterval {
		return fmt.Errorf("min_interval %s is greater than max_interval %s",
			FormatDuration(p.MinInterval), FormatDuration(p.MaxInterval))
	}
	return nil
}

// Over returns the outer rules with the fields that this policy sets.
func (p Policy) Over(r policy.Rules) (policy.Rules, error) {
	if err := p.Check(); err != nil {
		return r, err
	}
	set := func(to *time.Duration, from caddy.Duration) {
		if from > 0 {
			*to = time.Duration(from)
		}
	}
	outer := r
	set(&r.MinInterval, p.MinInterval)
	set(&r.DefaultInterval, p.DefaultInterval)
	set(&r.UnvalidatedInterval, p.UnvalidatedInterval)
	set(&r.MaxInterval, p.MaxInterval)
	set(&r.Timeout, p.Timeout)
	if p.Jitter != nil {
		r.Jitter = *p.Jitter
	}
	if p.MaxBody > 0 {
		r.MaxBody = p.MaxBody
	}
	if err := r.Validate(); err != nil {
		return r, err
	}
	if r.MinInterval <= r.MaxInterval {
		return r, nil
	}
	if p.MinInterval == 0 {
		// Raising max_interval silently would make the line useless, and lowering
		// min_interval silently would be impolite.
		return r, fmt.Errorf("max_interval %s is less than the min_interval %s that holds here: write a min_interval too",
			FormatDuration(p.MaxInterval), FormatDuration(outer.MinInterval))
	}
	// This policy sets a min_interval above the inherited max_interval: the operator
	// polls rarely on purpose.
	r.MaxInterval = r.MinInterval
	return r, nil
}
