// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// proxy is the address of the trusted proxy, and trusting the option that names it.
const (
	proxy    = "192.168.1.2"
	trusting = "servers {\ntrusted_proxies static " + proxy + "\n}"
)

// A poll has the two names of its readers' requests, as a request that is passed on has them.
func TestNamesOfARequest(t *testing.T) {
	var asked atomic.Int64
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/rss+xml")
		_, _ = io.WriteString(w, stage.FeedNamed(r.Host+" "+strings.Join(r.Header["X-Forwarded-Host"], ", ")))
	}))
	defer backend.Close()
	site := ":80 {\nbind void/site\nfeed_shield {\norigin {\nreverse_proxy " + backend.URL + "\n}\n}\n}\n"
	stage.RunInstanceWith(t, trusting, "", site, func(s *stage.Stage, _ string) {
		const polled = 1
		for _, tt := range []struct {
			from, host string
			forwarded  string
			polls      int
			shared     string // what all readers get
			passed     string // what the site says to a request that is passed on
		}{
			{stage.Outside, "a.example", "", polled, "a.example a.example", "a.example a.example"},
			{stage.Outside, "a.example", "evil.example", 0, "a.example a.example", "a.example a.example"},
			{proxy, "a.example", "", 0, "a.example a.example", "a.example a.example"},
			{proxy, "a.example", "a.example:80", 0, "a.example a.example", "a.example a.example:80"},
			{proxy, "a.example", "b.example", polled, "a.example b.example", "a.example b.example"},
			{proxy, "A.example.:80", "B.example", 0, "a.example b.example", "A.example.:80 B.example"},
			{proxy, "a.example", "x.example, b.example", 0, "a.example b.example", "a.example x.example, b.example"},
			{proxy, "a.example", "no host", 0, "a.example a.example", "a.example no host"},
			{proxy, "pollard:8080", "b.example", polled, "pollard:8080 b.example", "pollard:8080 b.example"},
			{proxy, "pollard:8080", "c.example", polled, "pollard:8080 c.example", "pollard:8080 c.example"},
		} {
			send := func(method string) *httptest.ResponseRecorder {
				r := stage.Request(method, "http://"+tt.host+"/feed.xml")
				r.Host, r.RemoteAddr = tt.host, tt.from+":1234"
				if tt.forwarded != "" {
					r.Header.Set("X-Forwarded-Host", tt.forwarded)
				}
				return s.Send(r)
			}
			asked.Store(0)
			stage.WantBody(t, tt.host+" "+tt.forwarded, send("GET"), 200, ">"+tt.shared+"<")
			if n := asked.Load(); n != int64(tt.polls) {
				t.Errorf("%s %s: %d polls, want %d", tt.host, tt.forwarded, n, tt.polls)
			}
			stage.WantBody(t, "passed on "+tt.host+" "+tt.forwarded, send("POST"), 200, ">"+tt.passed+"<")
		}
	})
}

// The pages of a shield are not for names that a stranger can own, neither as Host nor as
// X-Forwarded-Host (DNS rebinding).
func TestStatusAndNamesOfStrangers(t *testing.T) {
	site := ":80 {\nbind void/site\n" + shieldOf("x", "status /feed/status") + "}\nhttp://blog.example {\nbind void/site\n" + shieldOf("x", "status /feed/status") + "}\n"
	stage.RunWith(t, trusting, "", site, stage.Feed(stage.Sample), func(s *stage.Stage) {
		for _, tt := range []struct {
			from, host, forwarded string
			status                int
		}{
			{stage.Home, "blog.example", "", 200},
			{stage.Home, "localhost:8080", "", 200},
			{stage.Home, "192.168.1.9", "", 200},
			{stage.Home, "evil.example.org", "", 403},
			{stage.Home, "evil.example.org", "blog.example", 403}, // not of a proxy
			{proxy, "localhost", "blog.example", 200},
			{proxy, "localhost", "evil.example.org", 403},
			{proxy, "evil.example.org", "blog.example", 403},
		} {
			for _, method := range []string{"GET", "POST"} {
				target := map[string]string{"GET": "/feed/status/feeds", "POST": "/feed/status/refresh"}[method]
				r := stage.Request(method, "http://"+tt.host+target, "Content-Type", "application/x-www-form-urlencoded", "X-Forwarded-For", stage.Home)
				if tt.from != proxy {
					r.Header.Del("X-Forwarded-For")
				}
				if tt.forwarded != "" {
					r.Header.Set("X-Forwarded-Host", tt.forwarded)
				}
				r.RemoteAddr = tt.from + ":1234"
				if w := s.Send(r); (w.Code == 403) != (tt.status == 403) {
					t.Errorf("%s %s, %s from %s: %d, want %d", method, tt.host, tt.forwarded, tt.from, w.Code, tt.status)
				}
			}
		}
		s.Expect(0, "pages")
	})
}
