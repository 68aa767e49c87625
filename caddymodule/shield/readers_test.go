// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/status"
)

// A shield keeps statistics of its readers, also of those that it refuses.
func TestShieldRecordsReaders(t *testing.T) {
	stage.RunApp(t, "", defended("unconditional 4h"), stage.Feed(stage.Sample), func(s *stage.Stage) {
		for i := range 4 {
			if w := (visitor{header: []string{"User-Agent", "Rude/1.0"}}).ask(s, "GET"); (w.Code == 429) != (i > 1) {
				t.Errorf("request %d got %d", i, w.Code)
			}
		}
		visitor{header: []string{"User-Agent", "Good/1.0"}}.ask(s, "GET", "If-None-Match", "*")
		s.Send(stage.Request("POST", blog+"/feed"))
		want := status.Answers{Full: 2, NotModified: 1, Limited: 2}
		for _, query := range []string{"", "?url=http://blog.test/feed", "?url=https://blog.test/feed"} {
			if got := stage.ReportOfReaders(t, query).Total.Answers; got != want {
				t.Errorf("%s: %+v, want %+v", query, got, want)
			}
		}
	})
}
