// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"time"

	"github.com/feedpollard/pollard/feedurl"
)

// The pacing of a host for which no rule says anything.
const (
	defaultSpacing     = 2 * time.Second
	defaultConcurrency = 1
)

// scope says which hosts a poll is paced with.
type scope struct {
	domain string // polls of one registrable domain share a bound and, when limited, a pause
	host   string // polls of one host share a slot and a cool-down
	single bool   // a cool-down concerns the URL alone
}

// scopeOf a URL. Behind a name of the public DNS there is one server, or one
// limiter, for all URLs. An IP literal or a name of a private network stands for
// whatever listens at its ports, often a bridge that answers for many sites: there
// the ports are paced apart, and a pause that one URL earns is that URL's own.
func scopeOf(u feedurl.URL) scope {
	if u.IsPrivate() {
		return scope{domain: u.Address(), host: u.Address(), single: true}
	}
	return scope{domain: u.Domain(), host: u.Name()}
}

// tableOf makes a table of rules.
func tableOf(rules []HostRule) (table feedurl.HostTable[HostRule]) {
	for _, r := range rules {
		_ = table.Add(r.Pattern, r) // of one that is not valid, or given twice, nothing can be made
	}
	return table
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
