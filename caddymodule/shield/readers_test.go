// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/status"
)

// A shield keeps statistics of its readers, also of those that it refuses.
func TestShieldRecordsReaders(t *testing.T) {
	stage.Run(t, defended("unconditional 4h"), stage.Feed(stage.Sample), func(s *stage.Stage) {
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

// The pages show refusals, and which proxy Caddy should trust.
func TestStatusShowsRefusals(t *testing.T) {
	site := strings.Replace(defended("unconditional 4h"), "defend {", "status /feed/status\n\t\tdefend {", 1)
	stage.Run(t, site, stage.Feed(stage.Sample), func(s *stage.Stage) {
		for i := range 6 {
			for range 3 {
				visitor{from: "203.0.113.80", header: []string{"User-Agent", "Rude/1.0"}}.ask(s, "GET", "X-Forwarded-For", fmt.Sprint("198.51.100.", i))
			}
		}
		for target, want := range map[string]string{
			"":         "trusted_proxies static 203.0.113.80",
			" json":    `"untrusted_proxies": [`,
			"/readers": "6 requests were refused.", "/readers json": `"refused": 6`,
		} {
			path, json := strings.CutSuffix(target, " json")
			r := stage.Request("GET", blog+"/feed/status"+path)
			if json {
				r.Header.Set("Accept", "application/json")
			}
			r.RemoteAddr = stage.Home + ":1234"
			stage.WantBody(t, target, s.Send(r), 200, want)
		}
	})
}
