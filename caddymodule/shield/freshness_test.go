// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// HTTP freshness decides when the origin is asked. Readers get what the feed asks for as max-age, and other caches may serve
// it stale for a while, unless the origin forbids that.
func TestShieldFreshness(t *testing.T) {
	const nights = "<skipHours><hour>0</hour><hour>1</hour><hour>2</hour><hour>3</hour><hour>4</hour>" +
		"<hour>5</hour><hour>6</hour><hour>7</hour><hour>8</hour><hour>9</hour></skipHours>" // bubbles begin at midnight
	for _, tt := range []struct {
		name, lines, hints string
		header             []string
		visible            time.Duration // a new post
		told, cdn          string
	}{
		{"a careful podcast", "min_interval 2s", "<ttl>1507</ttl>" + nights, []string{"Cache-Control", "max-age=4"}, 4 * time.Second, "max-age=86400", "max-age=4"},
		{"no lifetime", "", "", []string{"Cache-Control", "no-cache"}, time.Minute, "max-age=60", ""},
		{"a lifetime of 0", "", "<ttl>90</ttl>", []string{"Cache-Control", "max-age=0"}, time.Minute, "max-age=5400", "max-age=60"},
		{"skip hours alone", "", nights, nil, time.Minute, "max-age=36000", "max-age=60"},
		{"a ttl that is shorter", "", "<ttl>5</ttl>", []string{"Cache-Control", "max-age=600"}, 10 * time.Minute, "max-age=600", ""},
		{"Expires in a month", "", "", []string{"Expires", "Mon, 31 Jan 2000 00:00:00 GMT"}, 24 * time.Hour, "max-age=86400", ""},
		{"Expires in a month, mended", "max_interval 10m", "", []string{"Expires", "Mon, 31 Jan 2000 00:00:00 GMT"}, 10 * time.Minute, "max-age=600", ""},
		{"a show that is complete", "", `<itunes:complete xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">yes</itunes:complete>`, nil, time.Minute, "max-age=86400", "max-age=60"},
		{"s-maxage", "", "", []string{"Cache-Control", "max-age=5, s-maxage=300", "CDN-Cache-Control", "max-age=9999"}, 5 * time.Minute, "max-age=300", ""},
		{"must-revalidate", "", "<ttl>90</ttl>", []string{"Cache-Control", "max-age=60, must-revalidate"}, time.Minute, "max-age=5400", "max-age=60"},
		{"proxy-revalidate, and Expires", "", "", []string{"Cache-Control", "proxy-revalidate", "Expires", "Sat, 01 Jan 2000 00:10:00 GMT"}, 10 * time.Minute, "max-age=600", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			named := func(title string) stage.Answer {
				header := append([]string{"Access-Control-Allow-Origin", "*"}, tt.header...)
				return stage.Feed(strings.Replace(stage.FeedNamed(title), "<link>", tt.hints+"<link>", 1), header...)
			}
			stage.Run(t, stage.ShieldedSite(blog, "{\njitter 0\n"+tt.lines+"\n}"), named("first"), func(s *stage.Stage) {
				w := s.Get(blog + "/feed")
				stage.WantBody(t, "at first", w, 200, "first")
				unchanged := s.Get(blog+"/feed", "If-None-Match", w.Header().Get("Etag"))
				if unchanged.Code != 304 {
					t.Errorf("a conditional request got %d", unchanged.Code)
				}
				if control := strings.Join(tt.header, " "); !strings.Contains(control, "revalidate") && !strings.Contains(control, "no-cache") {
					tt.told += stage.MayServeStale
					if tt.cdn != "" {
						tt.cdn += stage.MayServeStale
					}
				}
				for name, want := range map[string]string{
					"Cache-Control": tt.told, "Cdn-Cache-Control": tt.cdn, "Vary": "Accept-Encoding", "Access-Control-Allow-Origin": "*",
				} {
					if got := w.Header().Get(name); got != want {
						t.Errorf("%s of a 200: %q, want %q", name, got, want)
					}
					if got := unchanged.Header().Get(name); got != want {
						t.Errorf("%s of a 304: %q, want %q", name, got, want)
					}
				}
				s.Now(named("second"))
				time.Sleep(tt.visible - time.Second)
				stage.WantBody(t, "a second before", s.Get(blog+"/feed"), 200, "first")
				time.Sleep(time.Second)
				stage.WantBody(t, "when the origin may be asked", s.Get(blog+"/feed"), 200, "second")
				s.Expect(2, "two intervals")
			})
		})
	}
}
