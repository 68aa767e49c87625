// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// Shields with one block and different sites share nothing: not their rules, pages, counts and pings.
// A page shows its sites under whatever name it is reached, and no feeds that a handle before its own takes.
func TestShieldsOfSeveralSites(t *testing.T) {
	const same = "jitter 0\nstatus /feed/status\nping /feed/ping"
	site := func(address, inner string) string { return address + " {\nbind void/site\n" + inner + "}\n" }
	sites := site("http://a.example, http://localhost", shieldOf("x", same, "max_interval 2m")) +
		site("http://*.b.example", "@feeds {\nhost one.b.example\npath /feed*\n}\nhandle @feeds {\n"+shieldOf("x", same)+"}\nhandle {\n"+shieldOf("x", same, "max_interval 3m")+"}\n") +
		site(":80", shieldOf("x", same, "min_interval 5m"))
	answer := stage.Feed(stage.Sample, "Cache-Control", "max-age=3600", "Vary", "Origin")
	stage.Run(t, sites, answer, func(s *stage.Stage) {
		all := map[string]string{"a.example": "120", "one.b.example": "3600", "two.b.example": "180", "other.example": "3600"}
		for host, age := range all {
			if w := s.Get("http://" + host + "/feed.xml"); w.Header().Get("Cache-Control") != "max-age="+age+stage.MayServeStale {
				t.Errorf("%s: %s, want %s", host, w.Header().Get("Cache-Control"), age)
			}
			s.Get("http://"+host+"/feed.xml", "Origin", "https://o.example")
		}
		for at, lists := range map[string][]string{
			"a.example": {"a.example"}, "localhost": {"a.example"}, "one.b.example": {"one.b.example"},
			"two.b.example": {"two.b.example"}, "192.168.1.9": {"other.example"},
		} {
			post := func(path, form string) *httptest.ResponseRecorder {
				r := stage.Request("POST", "http://"+at+path, "Content-Type", "application/x-www-form-urlencoded")
				r.RemoteAddr, r.Body, r.ContentLength = stage.Home+":1234", io.NopCloser(strings.NewReader(form)), int64(len(form))
				return s.Send(r)
			}
			for _, page := range []string{"", "feeds", "savings", "readers"} {
				r := stage.Request("GET", "http://"+at+"/feed/status/"+page, "Accept", "application/json")
				r.RemoteAddr = stage.Home + ":1234"
				text := s.Send(r).Body.String()
				for host := range all {
					if page == "feeds" && strings.Contains(text, "http://"+host) != contains(lists, host) || !contains(lists, host) && strings.Contains(text, host) {
						t.Errorf("%s of %s and %s: %s", page, at, host, text)
					}
				}
				if want := map[int]string{1: `"Origin": 1`, 2: `"Origin": 2`}[len(lists)]; page == "feeds" && !strings.Contains(text, want) {
					t.Errorf("the counts at %s are not %s: %s", at, want, text)
				}
			}
			for host := range all {
				form := "http%3A%2F%2F" + host + "%2F"
				want := map[bool][2]int{true: {204, 429}, false: {404, 404}}[contains(lists, host)]
				if w := post("/feed/ping", "hub.mode=publish&hub.url="+form); w.Code != want[0] {
					t.Errorf("a ping at %s for %s: %d, want %d", at, host, w.Code, want[0])
				}
				if w := post("/feed/status/refresh", "url="+form+"feed.xml"); (w.Code == 404) != (want[1] == 404) {
					t.Errorf("refresh at %s of %s: %d, want %d", at, host, w.Code, want[1])
				}
			}
		}
		time.Sleep(time.Hour)
	})
}

func contains(list []string, one string) bool { return strings.Contains(strings.Join(list, " "), one) }
