// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// A feed with one reader, who comes once a day and not to the minute, keeps its date, and the reader is counted.
func TestDailyReader(t *testing.T) {
	stage.Run(t, stage.ShieldedSite(blog, ""), stage.Feed(stage.Sample), func(s *stage.Stage) {
		time.Sleep(10 * time.Minute)
		date := s.Get(blog + "/feed/").Header().Get("Last-Modified")
		for day := 1; day < 4; day++ {
			time.Sleep(25*time.Hour + 20*time.Minute)
			if w := s.Get(blog+"/feed/", "If-Modified-Since", date); w.Code != 304 {
				t.Errorf("day %d: %d %v", day, w.Code, w.Header())
			}
			if n := stage.ReportOfReaders(t, "").Total.Requests; n != int64(day+1) {
				t.Errorf("day %d: %d requests are counted", day, n)
			}
		}
	})
}
