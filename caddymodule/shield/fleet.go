// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// Fleet names a program that polls from many addresses.
type Fleet struct {
	// The beginning of its User-Agent: at least four characters.
	UserAgent string `json:"user_agent"`

	// Its address ranges (CIDR), or single addresses. Default: all.
	Networks []string `json:"networks,omitempty"`

	networks []netip.Prefix
}

// leastAgent is the least length of a fleet's User-Agent. Shorter ones begin too many others.
const leastAgent = len("iTMS")

// checkFleets reports fleets that are invalid or named twice.
func (f *Defend) checkFleets() error {
	named := map[string]bool{}
	for _, fleet := range f.Fleet {
		switch err := mistypedRange(fleet.UserAgent); {
		case err != nil:
			return fmt.Errorf("fleet: %w", err)
		case len(fleet.UserAgent) < leastAgent:
			return fmt.Errorf("fleet %q: expected at least %d characters of a User-Agent, and no less than its name", fleet.UserAgent, leastAgent)
		case named[fleet.UserAgent]:
			return fmt.Errorf("fleet %s: named twice: write all its address ranges on one line", fleet.UserAgent)
		}
		named[fleet.UserAgent] = true
	}
	return nil
}

// fleetOf returns the User-Agent of the fleet that a reader is of, or "".
func (f *Defend) fleetOf(userAgent string, client door.Client) (longest string) {
	for _, fleet := range f.Fleet {
		if len(fleet.UserAgent) > len(longest) && strings.HasPrefix(userAgent, fleet.UserAgent) &&
			(len(fleet.networks) == 0 || client.In(fleet.networks)) {
			longest = fleet.UserAgent
		}
	}
	return longest
}

// pageOf returns the host and path of a key. A fleet gets no more by another query or scheme.
func pageOf(key string) string {
	k, _ := poller.ParseShieldKey(key)
	return cmp.Or(k.Forwarded, k.Host) + k.Path
}

// readFleet reads the beginning of a User-Agent, whose words are joined, and address ranges.
func (f *Defend) readFleet(d *caddyfile.Dispenser) error {
	words, err := config.SomeArgs(d, 1, -1, "the beginning of a User-Agent, and address ranges")
	if err != nil {
		return err
	}
	isRange := func(word string) bool { _, err := config.ParseCIDRs([]string{word}); return err == nil }
	agent := slices.IndexFunc(words, isRange)
	if agent < 0 {
		agent = len(words)
	}
	for _, word := range words {
		if err := mistypedRange(word); err != nil {
			return d.Errf("fleet: %v", err)
		}
	}
	if other := slices.IndexFunc(words[agent:], func(word string) bool { return !isRange(word) }); agent == 0 || other >= 0 {
		return d.Errf("fleet: expected the beginning of a User-Agent, and address ranges after it, not %q", strings.Join(words, " "))
	}
	f.Fleet = append(f.Fleet, &Fleet{UserAgent: strings.Join(words[:agent], " "), Networks: words[agent:]})
	if err := f.checkFleets(); err != nil {
		return d.Errf("defend: %v", err)
	}
	return nil
}
