// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// The pacing of a host for which no rule says anything.
const (
	defaultSpacing     = 2 * time.Second
	defaultConcurrency = 1
)

func tableOf(rules []HostRule) (table feedurl.HostTable[HostRule]) {
	for _, r := range rules {
		_ = table.Add(r.Pattern, r) // of one that is not valid, or given twice, nothing can be made
	}
	return table
}

// Pace is how polls of a host are paced; of an empty one, those of a host that has no
// rule of its own.
func (s *Settings) Pace(host string) (spacing time.Duration, concurrency int) {
	rules := tableOf(s.Hosts)
	if host == "" {
		host = "host.invalid" // RFC 2606: nobody's, which only a rule for all covers
	}
	return pace(&rules, host)
}

// pace is the pacing of a host: each line from the most specific rule that has it.
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
