// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"time"
)

// Host is the host of a poll, for pacing. The zero Host is a site of this process, which
// is not paced.
type Host struct {
	Name    string        // of what is paced as one host; empty: not paced
	Domain  string        // its registrable domain; empty: none
	Spacing time.Duration // from the start of one poll of the host to the start of the next
}

// Pause is a time in which no feed of a host or domain is polled. If a scope has several,
// the longest counts.
type Pause struct {
	Scope string        // a [Host].Name or [Host].Domain, with the prefix "host " or "domain "
	For   time.Duration // from the time of the response
	Why   string        // HintHostCooldown or HintDomainCooldown
	// Step is the number of pauses in a row without a length, each of which is twice
	// the one before.
	Step int
}

// Slot is the right to send one request to a host. One of its methods must be called.
type Slot interface {
	// Poll polls the URL that the slot was acquired for, and gives the slot back. It
	// always returns an answer, and may be called once.
	Poll(ctx context.Context, ask Ask) Answer
	// Release gives the slot back without a request. After Poll it does nothing.
	Release()
}

// Held is the error if a host must not be polled yet.
type Held struct {
	Until time.Time
	Why   string // HintHostCooldown, HintDomainCooldown or HintHostSlot
}

func (h *Held) Error() string {
	return fmt.Sprintf("not to be asked before %s (%s)", h.Until.UTC().Format(time.RFC3339), h.Why)
}
