// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// The pacing of a host without a rule.
const (
	defaultSpacing     = 2 * time.Second
	defaultConcurrency = 1
)

func tableOf(rules []HostRule) (table feedurl.HostTable[HostRule]) {
	for _, r := range rules {
		_ = table.Add(r.Pattern, r) // invalid and duplicate patterns are errors of the configuration
	}
	return table
}

// Pace returns how polls of a host are paced. An empty host stands for hosts without a
// rule of their own.
func (s *Settings) Pace(host string) (spacing time.Duration, concurrency int) {
	rules := tableOf(s.Hosts)
	if host == "" {
		host = "host.invalid" // RFC 2606: only a rule for all hosts covers it
	}
	return pace(&rules, host)
}

// pace returns the pacing of a host. Each value comes from the most specific rule that sets
// it.
func pace(rules *feedurl.HostTable[HostRule], host string) (spacing time.Duration, concurrency int) {
	spacing, concurrency = defaultSpacing, defaultConcurrency
	for _, r := range rules.Covering(host) {
		if r.Spacing != 0 {
			spacing = max(r.Spacing, 0)
		}
		if r.Concurrency > 0 {
			concurrency = r.Concurrency
		}
	}
	return spacing, concurrency
}
