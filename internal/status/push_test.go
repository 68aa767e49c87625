// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"
)

func TestPushSentence(t *testing.T) {
	for _, tt := range []struct {
		push Push
		want string
	}{
		{Push{State: PushAsked, Asked: noon.Add(-time.Minute)}, "Asked for pushes 60 s ago, and has not confirmed that yet."},
		{Push{State: PushUnreachable, Asked: noon.Add(-2 * time.Hour), Callback: "https://a.example/-/websub/..."},
			"The hub could not reach this gateway: no confirmation has come to https://a.example/-/websub/... since it was asked 2 h ago."},
		{Push{State: PushRefused, Asked: noon.Add(-2 * time.Hour), Error: "the hub answered 500 Internal Server Error"},
			"Asked in vain 2 h ago (the hub answered 500 Internal Server Error)."},
		{Push{State: PushRefused, Asked: noon.Add(-time.Hour), Error: "the hub has denied it", Wait: noon.Add(7 * 24 * time.Hour)},
			"Asked in vain 1 h ago (the hub has denied it). It is asked again in 7 days at the earliest."},
		{Push{State: PushEnded}, "It is not used any more."},
		{Push{State: PushActive, Lease: noon.Add(4 * 24 * time.Hour), Error: "the hub answered 500 Internal Server Error"},
			"Sends pushes; the subscription ends in 4 days and is renewed before. None has come yet. The last try to renew it failed (the hub answered 500 Internal Server Error)."},
		{Push{State: PushActive, Lease: noon.Add(10 * 24 * time.Hour)}, "Sends pushes; the subscription ends in 10 days and is renewed before. None has come yet."},
		{Push{State: PushActive, Lease: noon.Add(10 * 24 * time.Hour), LastPush: noon.Add(-time.Hour), Ignored: 2},
			"Sends pushes; the subscription ends in 10 days and is renewed before. The last came 1 h ago. 2 pushes came without a valid signature."},
	} {
		if got := tt.push.Sentence(noon); got != tt.want {
			t.Errorf("%+v is described as %q, want %q", tt.push, got, tt.want)
		}
	}
}
