// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddyserver/caddy/v2"
)

// call sends a request to the admin routes and returns status and body; an error's
// text is the body.
func call(t *testing.T, method, target string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(method, target, nil)
	for _, route := range (Admin{}).Routes() {
		if route.Pattern != r.URL.Path {
			continue
		}
		w := httptest.NewRecorder()
		if err := route.Handler.ServeHTTP(w, r); err != nil {
			api, ok := errors.AsType[caddy.APIError](err)
			if !ok {
				t.Fatalf("%s %s: %v is no API error", method, target, err)
			}
			return api.HTTPStatus, api.Err.Error()
		}
		return w.Code, w.Body.String()
	}
	t.Fatalf("no route for %s", target)
	return 0, ""
}

func TestAdminWithoutApp(t *testing.T) {
	if status, text := call(t, "GET", "/pollard/feeds"); status != http.StatusServiceUnavailable {
		t.Errorf("got %d %s", status, text)
	}
}

func TestAdmin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, o := gatewayOf(t, "feed /one.xml https://one.example/feed")
		engines.LoadOrStore("test", a.engine)
		if err := a.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Stop(); engines.Delete("test") })
		a.engine.census.Tally("https://two.example/feed")

		query := func(feed string) string { return "?url=" + url.QueryEscape(feed) }
		feeds := func() []string {
			t.Helper()
			status, body := call(t, "GET", "/pollard/feeds")
			var list []struct {
				URL        string          `json:"url"`
				Considered json.RawMessage `json:"considered"`
			}
			if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 || list == nil {
				t.Fatalf("%d %v: %s", status, err, body)
			}
			var urls []string
			for _, f := range list {
				urls = append(urls, f.URL)
				if !strings.HasPrefix(string(f.Considered), "[") {
					t.Errorf("considered is %s", f.Considered)
				}
			}
			return urls
		}
		if got := strings.Join(feeds(), " "); got != "https://one.example/feed" {
			t.Errorf("at first: %s", got)
		}
		ask(t, g, "GET", "/https://two.example/feed?key=1", home)
		if got := strings.Join(feeds(), " "); got != "https://one.example/feed https://two.example/feed?key=1" {
			t.Errorf("with a second: %s", got)
		}
		steps := []struct {
			name   string
			method string
			target string
			status int
			body   string
		}{
			{"one feed", "GET", "/pollard/feeds" + query("HTTPS://two.example:443/feed?key=1"), 200, `"winner": "default"`},
			{"an unknown feed", "GET", "/pollard/feeds" + query("https://three.example/"), 404, "no such feed"},
			{"no URL", "GET", "/pollard/feeds" + query("three"), 400, "not a feed URL"},
			{"refresh", "POST", "/pollard/refresh" + query("https://one.example/feed"), 200, `"last_status": 200`},
			{"refresh too early", "POST", "/pollard/refresh" + query("https://one.example/feed"), 429, "min_interval"},
			{"refresh nothing", "POST", "/pollard/refresh", 400, "the parameter url is missing"},
			{"refresh by GET", "GET", "/pollard/refresh" + query("https://one.example/feed"), 405, "method"},
			{"refresh an unknown feed", "POST", "/pollard/refresh" + query("https://three.example/"), 404, "no such feed"},
			{"forget", "DELETE", "/pollard/feeds" + query("https://two.example/feed?key=1"), 204, ""},
			{"forget again", "DELETE", "/pollard/feeds" + query("https://two.example/feed?key=1"), 404, "no such feed"},
			{"stats", "GET", "/pollard/stats", 200, `"memory_bytes"`},
		}
		for _, s := range steps {
			if status, body := call(t, s.method, s.target); status != s.status || !strings.Contains(body, s.body) {
				t.Errorf("%s: got %d %s, want %d %s", s.name, status, body, s.status, s.body)
			}
		}
		if got := strings.Join(feeds(), " "); got != "https://one.example/feed" {
			t.Errorf("at last: %s", got)
		}
		if n := len(o.asked()); n != 2 {
			t.Errorf("%d polls, want 2", n)
		}
	})
}
