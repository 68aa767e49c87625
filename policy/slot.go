// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"fmt"
	"time"
)

// Host is whom a poll asks, as far as politeness goes. The zero value is a site of
// this process, which need not be spared.
type Host struct {
	Name    string        // what is paced as one host; empty: not paced
	Domain  string        // its registrable domain; empty: none
	Spacing time.Duration // from the start of one poll of the host to the start of the next
}

// Pause is a time in which a host or domain is not asked for any feed. Of several
// pauses of one scope the longest counts.
type Pause struct {
	Scope string        // a [Host].Name or [Host].Domain, with the prefix "host " or "domain "
	For   time.Duration // from the moment of the answer
	Why   string        // HintHostCooldown or HintDomainCooldown
	// Step is how often the scope has asked for a pause in a row, for doubling those
	// of which no length was said.
	Step int
}

// Slot is the right to ask a host once. One of its methods must be called.
type Slot interface {
	// Poll makes the poll for whose URL the slot was acquired, and gives the slot back.
	// It always returns an answer, and may be called once.
	Poll(ctx context.Context, ask Ask) Answer
	// Release gives the slot back: nothing was sent. After Poll it does nothing.
	Release()
}

// Held says that a host may not be asked yet.
type Held struct {
	Until time.Time
	Why   string // HintHostCooldown, HintDomainCooldown or HintHostSlot
}

func (h *Held) Error() string {
	return fmt.Sprintf("not to be asked before %s (%s)", h.Until.UTC().Format(time.RFC3339), h.Why)
}
