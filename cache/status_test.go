// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/policy"
)

func TestStatusHasNoCredentials(t *testing.T) {
	const secret, url = "hunter2", "https://bob:hunter2@x.example/f?token=hunter2"
	s := &feedstate.State{Version: 1, Ended: true}
	s.Feed.Alias, s.Feed.Validators = url, policy.Validators{URL: url, ETag: `"1"`}
	s.Feed.History.Hints = policy.Hints{Self: url, NewFeedURL: url, Hubs: []string{url}}
	s.Last.Error = "asking " + url + ": refused"
	c := &Cache{sinceStart: newClock(time.Now, nil)}
	c.settings.Store(Settings{}.filled())
	out, err := json.Marshal(c.describe(feedstate.ParseKey("shield:x "+url), s, -1, nil))
	if err != nil || strings.Contains(string(out), secret) || strings.Count(string(out), "x.example") < 6 {
		t.Errorf("%s, %v", out, err)
	}
}
