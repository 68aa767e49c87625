// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// The pacing of a host for which no rule says anything.
const (
	defaultSpacing     = 2 * time.Second
	defaultConcurrency = 1
)

// MatchHost reports whether a pattern covers a host name: "example.com" that host
// alone, "*.example.com" every host below it at any depth but not example.com
// itself (as in DNS, RFC 4592, and in certificates), "*" every host. Case and a
// trailing dot do not matter.
func MatchHost(pattern, host string) bool {
	pattern, host = plainName(pattern), plainName(host)
	if pattern == "*" {
		return true
	}
	if parent, ok := strings.CutPrefix(pattern, "*."); ok {
		return len(host) > len(parent)+1 && strings.HasSuffix(host, "."+parent)
	}
	return pattern == host
}

func plainName(name string) string {
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// bySpecificity sorts rules so that the most specific comes first: single hosts
// before wildcards, longer wildcards before shorter ones.
func bySpecificity(rules []HostRule) []HostRule {
	rules = slices.Clone(rules)
	rank := func(r HostRule) int {
		if strings.HasPrefix(r.Pattern, "*") {
			return -len(r.Pattern)
		}
		return -1 << 16
	}
	slices.SortStableFunc(rules, func(a, b HostRule) int { return cmp.Compare(rank(a), rank(b)) })
	return rules
}

// pace is the pacing of a host by rules sorted by specificity.
func pace(rules []HostRule, host string) (spacing time.Duration, concurrency int) {
	for _, r := range rules {
		if !MatchHost(r.Pattern, host) {
			continue
		}
		if spacing == 0 {
			spacing = r.Spacing
		}
		if concurrency == 0 {
			concurrency = r.Concurrency
		}
	}
	if spacing == 0 {
		spacing = defaultSpacing
	}
	if concurrency <= 0 {
		concurrency = defaultConcurrency
	}
	return max(spacing, 0), concurrency
}
