// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/policy"
)

// Policy is how often feeds may be polled, and how much a poll may cost. It can
// be given for all feeds (in the app), for a host and for one feed; what a feed
// does not say, its host says; what the host does not say, the app says. Every
// field is optional.
type Policy struct {
	// The floor: a feed is never polled more often than this, whatever its hints
	// say. Default: `1h`.
	MinInterval caddy.Duration `json:"min_interval,omitempty"`

	// The interval where neither a hint nor the rhythm of the entries says
	// anything. Default: `1h`.
	DefaultInterval caddy.Duration `json:"default_interval,omitempty"`

	// The floor for a feed whose origin gives neither an ETag or Last-Modified nor
	// an explicit hint, so that each poll costs a whole download. Default: `24h`.
	UnvalidatedInterval caddy.Duration `json:"unvalidated_interval,omitempty"`

	// The cap on what hints and back-off can ask for. Retry-After has a cap of its
	// own, 7 days. Default: `24h`, or the floor where that is higher.
	MaxInterval caddy.Duration `json:"max_interval,omitempty"`

	// The largest fraction of an interval that is added to it by chance, from 0
	// (none) to 1, so that feeds do not fall into step. The Caddyfile takes a
	// percentage, or 0. Default: `0.1`.
	Jitter *float64 `json:"jitter,omitempty"`

	// How long one poll may take, redirects included. Default: `30s`.
	Timeout caddy.Duration `json:"timeout,omitempty"`

	// The largest feed accepted, in bytes after decoding. The Caddyfile takes a
	// size such as `10MiB`. Default: 10 MiB.
	MaxBody int64 `json:"max_body,omitempty"`
}

// lines are the Caddyfile lines of a policy.
func (p *Policy) lines() lines {
	return lines{
		"min_interval":         {read: durationLine(&p.MinInterval)},
		"default_interval":     {read: durationLine(&p.DefaultInterval)},
		"unvalidated_interval": {read: durationLine(&p.UnvalidatedInterval)},
		"max_interval":         {read: durationLine(&p.MaxInterval)},
		"timeout":              {read: durationLine(&p.Timeout)},
		"max_body":             {read: sizeLine(&p.MaxBody)},
		"jitter": {read: func(d *caddyfile.Dispenser) error {
			text, err := oneArg(d, `a percentage such as 10%, or 0`)
			if err != nil {
				return err
			}
			fraction, err := parsePercentage(text)
			if err != nil {
				return d.Errf("jitter: %v", err)
			}
			p.Jitter = &fraction
			return nil
		}},
	}
}

// check reports what cannot be meant.
func (p Policy) check() error {
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
			return fmt.Errorf("%s: %s is negative", f.name, short(f.value))
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
			short(p.MinInterval), short(p.MaxInterval))
	}
	return nil
}

// over returns the rules that hold where this policy is laid over outer rules.
func (p Policy) over(r policy.Rules) (policy.Rules, error) {
	if err := p.check(); err != nil {
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
		// Lifting the cap silently would make a line without effect, lowering the
		// floor silently would be impolite.
		return r, fmt.Errorf("max_interval %s is less than the min_interval %s that holds here: write a min_interval too",
			short(p.MaxInterval), short(outer.MinInterval))
	}
	// A floor above the cap that was inherited: who polls rarely by intention has
	// no need of the cap.
	r.MaxInterval = r.MinInterval
	return r, nil
}

// parseDuration reads a positive duration in Caddy's form: Go's, and days.
func parseDuration(text string) (caddy.Duration, error) {
	d, err := caddy.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is no duration: expected a number with a unit, such as 30s, 15m, 2h or 1d", text)
	}
	if d <= 0 {
		return 0, fmt.Errorf("%q is no positive duration: expected one such as 30s, 15m, 2h or 1d", text)
	}
	return caddy.Duration(d), nil
}

// parseSize reads a positive number of bytes.
func parseSize(text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is no size: expected one such as 512KiB, 64MiB or 1GB", text)
	}
	return int64(n), nil
}

// parsePercentage reads "10%" or "0" as a fraction.
func parsePercentage(text string) (float64, error) {
	bad := fmt.Errorf("%q is no percentage: expected 0 or one from 0%% to 100%%, such as 10%%", text)
	if text == "0" {
		return 0, nil
	}
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, bad
	}
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || !(percent >= 0) || percent > 100 {
		return 0, bad
	}
	return percent / 100, nil
}

// short writes a duration without the zero units at the end of Go's own form.
func short[D ~int64](d D) string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}
