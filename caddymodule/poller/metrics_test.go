// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// figures are our metrics in the registry of the running configuration, such as
// pollard_polls_total{new}; of a histogram, how many observations there were.
func figures(t *testing.T) map[string]float64 {
	t.Helper()
	ctx := caddy.ActiveContext()
	families, err := ctx.GetMetricsRegistry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]float64)
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "pollard_") {
			continue
		}
		for _, m := range family.GetMetric() {
			name := family.GetName()
			var labels []string
			for _, pair := range m.GetLabel() {
				if pair.GetValue() != "" {
					labels = append(labels, pair.GetValue())
				}
			}
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			all[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return all
}

// wantFigures fails unless figures are these, and all others that begin like one of
// them are 0.
func wantFigures(t *testing.T, what string, want map[string]float64) {
	t.Helper()
	got := figures(t)
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: %s is %v, want %v", what, name, got[name], value)
		}
		family, _, _ := strings.Cut(name, "{")
		for other, value := range got {
			if _, told := want[other]; !told && value != 0 && strings.HasPrefix(other, family+"{") {
				t.Errorf("%s: %s is %v, want 0", what, other, value)
			}
		}
	}
}

// A gateway counts what readers and origins have seen, also over a reload.
func TestMetricsOfGateway(t *testing.T) {
	var (
		mu   sync.Mutex
		sent float64 // by origins
	)
	answer := func(r *http.Request) (int, string, http.Header) {
		status, body := http.StatusOK, stage.Sample
		switch r.URL.Path {
		case "/page":
			body = "<!DOCTYPE html><html><body>Hello</body></html>"
		case "/gone":
			status, body = http.StatusGone, ""
		}
		time.Sleep(time.Second)
		mu.Lock()
		sent += float64(len(body))
		mu.Unlock()
		return status, body, http.Header{"Content-Type": {"application/rss+xml"}, "Last-Modified": {"Fri, 31 Dec 1999 00:00:00 GMT"}}
	}
	stage.RunGateways(t, answer, func(t *testing.T, o *stage.Stage) {
		const feeds = "feed /one.xml https://one.example/feed\nfeed /gone.xml https://gone.example/gone"
		o.MustLoadFeeds("", "", feeds)
		served := 0.0
		get := func(target string, status int, header ...string) http.Header {
			t.Helper()
			w := stage.Get(t, "http://feeds.test"+target, stage.Outside, header...)
			if w.Code != status {
				t.Fatalf("%s: %d %s", target, w.Code, w.Body)
			}
			if status == http.StatusOK {
				served += float64(w.Body.Len())
			}
			return w.Header()
		}
		before := figures(t)
		for _, name := range []string{
			"pollard_requests_total{gateway,hit}", "pollard_requests_total{shield,passed}", "pollard_polls_total{moved}",
			"pollard_feeds{fresh}", "pollard_memory_bytes", "pollard_origin_bytes_total", "pollard_served_bytes_total",
		} {
			if value, told := before[name]; !told || value != 0 {
				t.Errorf("before any request %s is %v, told: %v", name, value, told)
			}
		}

		tag := get("/one.xml", 200).Get("Etag")
		get("/one.xml", 200)
		get("/one.xml", 200, "Accept-Encoding", "gzip")
		get("/one.xml", 304, "If-None-Match", tag)
		get("/by-url/https://two.example/feed", 200)
		get("/by-url/https://three.example/page", 502)
		get("/gone.xml", 410)
		get("/nothing", 404)
		get("/by-url/nothing", 404)
		get("/by-url/https:///feed", 400)
		stage.Get(t, "http://feeds.test/by-url/~no-such-token/https://two.example/feed", stage.Outside)
		check := func(what string, stale float64) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			wantFigures(t, what, map[string]float64{
				"pollard_requests_total{gateway,miss}":           2,
				"pollard_requests_total{gateway,hit}":            2,
				"pollard_requests_total{gateway,not_modified}":   1,
				"pollard_requests_total{gateway,stale}":          stale,
				"pollard_requests_total{gateway,unavailable}":    2,
				"pollard_requests_total{gateway,refused}":        3,
				"pollard_requests_total{gateway,refused,access}": 1,
				"pollard_polls_total{new}":                       2,
				"pollard_polls_total{unchanged}":                 stale,
				"pollard_polls_total{failed}":                    1,
				"pollard_polls_total{gone}":                      1,
				"pollard_poll_duration_seconds":                  4 + stale,
				"pollard_origin_bytes_total":                     sent,
				"pollard_served_bytes_total":                     served,
			})
			for op, want := range map[string]float64{"commit": 4 + stale} {
				if got := figures(t)["pollard_store_duration_seconds{"+op+"}"]; got != want {
					t.Errorf("%s: %v operations %s of the store, want %v", what, got, op, want)
				}
			}
		}
		check("at first", 0)
		wantFigures(t, "at first", map[string]float64{
			"pollard_feeds{fresh}": 2, "pollard_feeds{unread}": 1, "pollard_feeds{gone}": 1,
		})
		if memory := figures(t)["pollard_memory_bytes"]; memory <= 0 {
			t.Errorf("two feeds take %v bytes of memory", memory)
		}

		o.MustLoadFeeds("", "min_interval 90m", feeds)
		check("after a reload", 0)
		time.Sleep(3 * time.Hour)
		wantFigures(t, "three hours later", map[string]float64{
			// An address that was not a feed is kept as long as its back-off has to be remembered.
			"pollard_feeds{due}": 2, "pollard_feeds{gone}": 1, "pollard_feeds{unread}": 1,
		})
		get("/one.xml", 200)
		check("after a reload and a poll", 1)
	})
}

// A shield counts what it serves, what it refuses and what it lets through.
// Its own polls do not count as requests of readers.
func TestMetricsOfShield(t *testing.T) {
	site := func(w http.ResponseWriter, r *http.Request) error {
		if strings.HasPrefix(r.URL.Path, "/page") {
			return stage.Plain(200, "<!DOCTYPE html><html></html>", "Content-Type", "text/html")(w, r)
		}
		return stage.Feed(stage.Sample, "Cache-Control", "max-age=60", "Etag", `"one"`)(w, r)
	}
	stage.Run(t, stage.ShieldedSite("http://blog.test", "{\ndefend {\nunconditional 4h\n}\n}"), site, func(s *stage.Stage) {
		served := 0.0
		get := func(path, agent string, header ...string) {
			w := s.Get("http://blog.test"+path, append(header, "User-Agent", agent)...)
			synctest.Wait() // for what is stored in the background
			if w.Code == 200 && path == "/feed" {
				served += float64(w.Body.Len())
			}
		}
		get("/feed", "One/1.0")
		get("/feed", "One/1.0", "If-None-Match", "*")
		for range 3 { // the third one is too many
			get("/feed", "Two/1.0")
		}
		get("/page", "Two/1.0")
		get("/page", "Two/1.0")
		s.Send(stage.Request("POST", "http://blog.test/comments"))
		time.Sleep(2 * time.Minute)
		get("/feed", "Three/1.0")
		want := map[string]float64{"pollard_served_bytes_total": served}
		for result, n := range map[string]float64{"miss": 1, "not_modified": 1, "refused,unconditional": 1, "stale": 1, "hit": 2, "passed": 3} {
			want["pollard_requests_total{shield,"+result+"}"] = n
		}
		wantFigures(t, "feeds", want)
	})
}
