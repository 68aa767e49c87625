// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// Push is the subscription of a feed at its hub (WebSub).
type Push struct {
	Hub      feedurl.Redacted `json:"hub"`
	State    PushState        `json:"state"`
	Lease    time.Time        `json:"lease,omitzero"`     // until when the hub sends pushes
	Asked    time.Time        `json:"asked,omitzero"`     // the last request to the hub
	LastPush time.Time        `json:"last_push,omitzero"` // with a valid signature
	Ignored  int64            `json:"ignored,omitempty"`  // pushes without a valid signature, since the feed is in memory
	Error    string           `json:"error,omitempty"`    // of the last request
	Wait     time.Time        `json:"wait,omitzero"`      // until when the hub is not asked again
	Callback string           `json:"callback,omitempty"` // without what only the hub knows of it
}

// PushState is the state of a subscription.
type PushState string

// The states of a subscription.
const (
	PushAsked       PushState = "asked"       // the hub has not confirmed the request yet
	PushActive      PushState = "active"      // the hub sends pushes
	PushUnreachable PushState = "unreachable" // the hub has not confirmed the request within an hour
	PushRefused     PushState = "refused"     // the request failed, or the hub has denied it
	PushEnded       PushState = "ended"       // the hub is not used any more
)

// Sentence describes the subscription.
func (p *Push) Sentence(now time.Time) string {
	switch p.State {
	case PushAsked:
		return fmt.Sprintf("Asked for pushes %s, and has not confirmed that yet.", Ago(p.Asked, now))
	case PushUnreachable:
		return fmt.Sprintf("The hub could not reach this gateway: no confirmation has come to %s since it was asked %s.", p.Callback, Ago(p.Asked, now))
	case PushRefused:
		text := fmt.Sprintf("Asked in vain %s%s.", Ago(p.Asked, now), bracketed(p.Error))
		if p.Wait.After(now) {
			text += " It is asked again " + Until(p.Wait, now) + " at the earliest."
		}
		return text
	case PushEnded:
		return "It is not used any more."
	}
	text := "Sends pushes; the subscription ends " + Until(p.Lease, now) + " and is renewed before."
	if p.LastPush.IsZero() {
		text += " None has come yet."
	} else {
		text += " The last came " + Ago(p.LastPush, now) + "."
	}
	if p.Error != "" {
		text += " The last try to renew it failed" + bracketed(p.Error) + "."
	}
	if p.Ignored > 0 {
		text += fmt.Sprintf(" %s %s without a valid signature.", humanize.Comma(p.Ignored), Plural(p.Ignored, "push came", "pushes came"))
	}
	return text
}
