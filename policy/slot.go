// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"time"
)

// Host is the host of a poll, for pacing. The zero Host is a site of this process, which
// is not paced.
type Host struct {
	Name    string        // of what is paced as one host; empty: not paced
	Domain  string        // its registrable domain; empty: none
	Spacing time.Duration // from the start of one poll of the host to the start of the next
}

// The scopes of pauses are a [Host].Name or [Host].Domain with one of these before it, and the rank
// after it for which the pause holds.
const (
	ScopeHost   = "host "
	ScopeDomain = "domain "
)

// Pause is a time in which feeds of a host or domain are not polled.
type Pause struct {
	Scope string
	// For is how long the host asked for. Zero: it did not say.
	For time.Duration
	Why string // HintHostCooldown, HintRateLimit or HintDomainCooldown
	// Step is the number of pauses in a row.
	Step int
	Rank int    // it holds for feeds of this rank and below; 0: for all
	URL  string // the key of the feed whose poll was refused; empty: not known
	// Limited reports that the host has answered 429. If two hosts of Domain do that, the
	// whole domain pauses, as one rate limiter is in front of all its hosts.
	Limited bool
	Domain  string
}

// Good is a host that has answered well.
type Good struct {
	Host
	RateLimit bool // the answer says what is left of a rate limit
}

// Standing is how much is known of a feed, for the pacing of an address that many hosts share.
type Standing int

// The standings. Above StandingKnown, requests are spaced more.
const (
	StandingKnown    Standing = iota // it has a version, and not only strangers read it
	StandingNew                      // it has no version
	StandingStranger                 // only strangers ask for it, and not for long
)

// Slot is the right to send one request to a host. Poll or Release must be called.
type Slot interface {
	// Turn looks up the host, and returns how long the poll must wait for its turn at the
	// address. That moment is reserved for its URL: the slot should be released, and another
	// one be acquired then. 0: it may be made now.
	Turn(ctx context.Context, standing Standing) time.Duration
	// Poll polls the URL that the slot was acquired for, and gives the slot back. It
	// always returns an answer, and may be called once.
	Poll(ctx context.Context, ask Ask) Answer
	// Release gives the slot back without a request. After Poll it does nothing.
	Release()
}
