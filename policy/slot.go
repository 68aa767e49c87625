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
	Site    string        // [feedurl.URL.Site]; empty if it is not paced
	Spacing time.Duration // from the last request to the site to one to this host
}

// Pause is a time in which feeds of a site are not polled.
type Pause struct {
	Site string // [Host.Site]
	New  bool   // it holds for feeds alone that never gave a version
	// For is how long the pause is. Of an [Answer] it is how long the site asked for, 0 if it did not say.
	For  time.Duration
	Why  string // HintHostCooldown or HintRateLimit
	Step int    // how many refusals in a row it stands for
	URL  string // key of the feed whose poll was refused; empty if it is not known
}

// Slot is the right to send one request to a host. Poll or Release must be called.
type Slot interface {
	// Poll polls the URL that the slot was acquired for, and gives the slot back. It
	// always returns an answer, and may be called once.
	Poll(ctx context.Context, ask Ask) Answer
	// Release gives the slot back without a request. After Poll it does nothing.
	Release()
}
