// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/policy/document/site"
)

func TestStateTold(t *testing.T) {
	for _, tt := range []struct {
		name       string
		winner     string
		status     int
		failing    bool
		unread     bool // no version
		configured bool
		page       bool
		due        bool
		shown      status.State
	}{
		{name: "in good order", winner: policy.HintTTL, status: 200, shown: status.StateFresh},
		{name: "in good order after a 429", winner: policy.HintTTL, status: 429, shown: status.StateFresh},
		{name: "its host pauses", winner: policy.HintHostCooldown, shown: status.StateWaiting},
		{name: "due after a pause", winner: policy.HintRetryAfter, due: true, shown: status.StateDue},
		{name: "due", winner: policy.HintTTL, status: 200, due: true, shown: status.StateDue},
		{name: "gone", status: http.StatusGone, failing: true, due: true, shown: status.StateGone},
		{name: "a bare 429", failing: true, winner: policy.HintBackOff, status: 429, shown: status.StateWaiting},
		{name: "a 429 with a wait", failing: true, winner: policy.HintRetryAfter, status: 429, shown: status.StateWaiting},
		{name: "a 429 long ago", failing: true, winner: policy.HintBackOff, status: 429, due: true, shown: status.StateFailing},
		{name: "a 503", failing: true, winner: policy.HintBackOff, status: 503, shown: status.StateFailing},
		{name: "a 404 that never was a feed", failing: true, winner: policy.HintBackOff, status: 404, unread: true, shown: status.StateUnread},
		{name: "a web page, due", failing: true, winner: policy.HintBackOff, status: 200, unread: true, page: true, due: true, shown: status.StateUnread},
		{name: "a configured URL that never was a feed", failing: true, winner: policy.HintBackOff, status: 404, unread: true, configured: true, shown: status.StateFailing},
		{name: "a configured URL before its first poll", unread: true, configured: true, due: true, shown: status.StateDue},
		{name: "a 410 from what never was a feed", unread: true, failing: true, status: 410, shown: status.StateUnread},
	} {
		s := &state{version: 1}
		if tt.unread {
			s.version = 0
		}
		s.last.Winner, s.last.Status = tt.winner, tt.status
		if tt.failing {
			s.feed.History.Failures = 1
		}
		if tt.status == http.StatusGone {
			s.last.Failure = policy.FailureGone
		}
		if tt.page {
			s.last.Site = new(site.Page)
		}
		if !tt.due {
			s.due = 1
		}
		if got := s.shown(tt.configured, 0); got != tt.shown {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.shown)
		}
	}
}

func TestStatusHasNoCredentials(t *testing.T) {
	const secret, url = "hunter2", "https://bob:hunter2@x.example/f?token=hunter2"
	s := &state{version: 1, ended: true}
	s.feed.Alias, s.feed.Validators = url, policy.Validators{URL: url, ETag: `"1"`}
	s.feed.History.Hints = policy.Hints{Self: url, NewFeedURL: url, Hubs: []string{url}}
	s.last.Error = "asking " + url + ": refused"
	c := &Cache{clock: newClock(time.Now, nil)}
	c.settings.Store(&Settings{})
	told, err := json.Marshal(c.status(ParseKey("shield:x "+url), s, -1, nil))
	if err != nil || strings.Contains(string(told), secret) || strings.Count(string(told), "x.example") < 6 {
		t.Errorf("%s, %v", told, err)
	}
}
