// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import "slices"

// State is the state of a feed.
type State string

// The states of a feed, as JSON, metrics and flags of commands name them; see [State.Word].
const (
	StateFresh   State = "fresh"   // the last poll was good, and the next one is not due
	StateDue     State = "due"     // it may be polled
	StateWaiting State = "waiting" // its site has asked for a pause
	StateFailing State = "failing" // the last poll failed
	StateGone    State = "gone"    // its site answered 410, so it is not polled
	StateUnread  State = "unread"  // it is not configured and has no version: a home page, an icon, a mistyped URL
)

// States are all states, those that need attention first.
var States = []State{StateFailing, StateGone, StateWaiting, StateDue, StateFresh, StateUnread}

// Word is what people read for the state.
func (s State) Word() string {
	if s == StateUnread {
		return "no feed"
	}
	return string(s)
}

// Valid reports whether s is a state.
func (s State) Valid() bool { return slices.Contains(States, s) }
