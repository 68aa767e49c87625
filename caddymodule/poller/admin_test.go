// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/feedpollard/pollard/caddymodule/gateway"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/loopback"
	"github.com/feedpollard/pollard/upstream"
)

func TestAdminWithoutApp(t *testing.T) {
	if status, text := stage.Call(t, "GET", "/pollard/feeds"); status != http.StatusServiceUnavailable || !strings.Contains(text, "the configuration has neither") {
		t.Errorf("got %d %s", status, text)
	}
}

// While the store is being opened, which may take long, the admin API says so.
func TestAdminWhileTheStoreIsOpened(t *testing.T) {
	release, err := poller.Adopt(t.TempDir(), poller.Parts{Origin: upstream.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := release(); err != nil {
			t.Error(err)
		}
	}()
	if status, text := stage.Call(t, "GET", "/pollard/health/live"); status != http.StatusOK {
		t.Errorf("live: %d %s", status, text)
	}
	for _, target := range []string{"/pollard/feeds", "/pollard/stats", "/pollard/health/ready"} {
		if status, text := stage.Call(t, "GET", target); status != http.StatusServiceUnavailable || !strings.Contains(text, "not yet running") {
			t.Errorf("%s: %d %s", target, status, text)
		}
	}
}

// When the file of the store was damaged and has been set aside, statistics and pages say so, also after another start.
func TestDamagedStoreIsTold(t *testing.T) {
	at := loopback.FreeAddress(t)
	sites := "http://" + at + " {\nbind 127.0.0.1\nfeed_gateway\n}\n"
	stage.RunInstance(t, "", sites, func(s *stage.Stage, _ string) {
		told := func() (inStats, onPage bool) {
			t.Helper()
			_, text := stage.Call(t, "GET", "/pollard/stats")
			page := stage.Get(t, "http://"+at+"/-/feeds", stage.Home)
			if page.Code != http.StatusOK {
				t.Fatalf("the page: %d %s", page.Code, page.Body)
			}
			return strings.Contains(text, `"store_damaged": "`), strings.Contains(page.Body.String(), "Stored feeds are missing")
		}
		if inStats, onPage := told(); inStats || onPage {
			t.Errorf("of a new store: in statistics %v, on the page %v", inStats, onPage)
		}
		s.Stop()
		if err := os.WriteFile(filepath.Join(s.Dir, "feeds.sqlite"), bytes.Repeat([]byte("noise"), 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s.Load(sites)
			if inStats, onPage := told(); !inStats || !onPage {
				t.Errorf("in statistics %v, on the page %v", inStats, onPage)
			}
			s.Stop()
		}
		s.Load(sites)
	})
}

func TestAdmin(t *testing.T) {
	polls := 0
	web := func(*http.Request) (int, string, http.Header) {
		polls++
		return 200, stage.Sample, http.Header{"Etag": {`"one"`}}
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		o.MustLoadFeeds("", "", "feed /one.xml https://one.example/feed")

		query := func(feed string) string { return "?url=" + url.QueryEscape(feed) }
		feeds := func() []string {
			t.Helper()
			status, body := stage.Call(t, "GET", "/pollard/feeds")
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
				slices.Sort(urls)
				if !strings.HasPrefix(string(f.Considered), "[") {
					t.Errorf("considered is %s", f.Considered)
				}
			}
			return urls
		}
		if got := strings.Join(feeds(), " "); got != "https://one.example/feed" {
			t.Errorf("at first: %s", got)
		}
		stage.Get(t, "http://feeds.test/by-url/https://two.example/feed?key=1", stage.Home)
		if got := strings.Join(feeds(), " "); got != "https://one.example/feed https://two.example/feed?key=***" {
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
			{"refresh too early", "POST", "/pollard/refresh" + query("https://one.example/feed"), 202, `"next_poll": "2000-01-01T01:00:00Z"`},
			{"refresh nothing", "POST", "/pollard/refresh", 400, "the parameter url is missing"},
			{"refresh by GET", "GET", "/pollard/refresh" + query("https://one.example/feed"), 405, "method"},
			{"refresh an unknown feed", "POST", "/pollard/refresh" + query("https://three.example/"), 404, "no such feed"},
			{"forget a URL that has another in it", "DELETE", "/pollard/feeds" + query("https://archive.example/2020/https://two.example/feed?key=1"), 404, "no such feed"},
			{"forget", "DELETE", "/pollard/feeds" + query("https://two.example/feed?key=1"), 204, ""},
			{"forget again", "DELETE", "/pollard/feeds" + query("https://two.example/feed?key=1"), 404, "no such feed"},
			{"ready", "GET", "/pollard/health/ready", 200, `"status": "ok"`},
			{"ready, by HEAD", "HEAD", "/pollard/health/ready", 200, ""},
			{"ready, by POST", "POST", "/pollard/health/ready", 405, "GET or HEAD"},
			{"live", "GET", "/pollard/health/live", 200, `"status": "ok"`},
			{"stats", "GET", "/pollard/stats", 200, `"memory_bytes"`},
		}
		for _, s := range steps {
			if status, body := stage.Call(t, s.method, s.target); status != s.status || !strings.Contains(body, s.body) {
				t.Errorf("%s: got %d %s, want %d %s", s.name, status, body, s.status, s.body)
			}
		}
		if got := strings.Join(feeds(), " "); got != "https://one.example/feed" {
			t.Errorf("at last: %s", got)
		}
		if polls != 2 {
			t.Errorf("%d polls, want 2", polls)
		}
	})
}

// The API does not show what a configuration hides by a placeholder.
func TestAdminTellsNoCredentials(t *testing.T) {
	t.Setenv("POLLARD_TEST_FEED", "https://bob:sesame@one.example/feed.xml?key=topsecretkey123456")
	stage.RunGateways(t, func(*http.Request) (int, string, http.Header) { return 200, stage.Sample, nil }, func(t *testing.T, o *stage.Stage) {
		o.MustLoadFeeds("", "", "feed /mine.xml {env.POLLARD_TEST_FEED}")
		stage.Get(t, "http://feeds.test/mine.xml", stage.Home)
		for _, target := range []string{"/pollard/feeds", "/pollard/feeds" + "?url=" + url.QueryEscape("https://bob:sesame@one.example/feed.xml?key=topsecretkey123456")} {
			status, text := stage.Call(t, "GET", target)
			if status != 200 || !strings.Contains(text, "one.example") || strings.Contains(text, "sesame") || strings.Contains(text, "topsecret") {
				t.Errorf("%s: %d %s", target, status, text)
			}
		}
	})
}

// A pause of a site is explained to all who see the feed that waits. The feed that was refused is named to the operator; on
// pages only if the configuration names it.
func TestPauseOfAHostIsExplained(t *testing.T) {
	asked := 0
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Path == "/other" {
			if asked++; asked > 1 {
				return 429, "", nil
			}
		}
		return 200, stage.Sample, http.Header{"Etag": {`"one"`}}
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		o.MustLoadFeeds("", "", "feed /one.xml https://one.example/feed\ntoken alice 0123456789abcdef")
		const alice = "http://feeds.test/~0123456789abcdef"
		stage.Get(t, alice+"/https://one.example/other", stage.Home)
		time.Sleep(30 * time.Minute)
		stage.Get(t, "http://feeds.test/one.xml", stage.Home)
		time.Sleep(50 * time.Minute)
		stage.Get(t, alice+"/https://one.example/other", stage.Home)
		time.Sleep(30 * time.Minute)
		stage.Get(t, "http://feeds.test/one.xml", stage.Home)
		const query = "?url=https%3A%2F%2Fone.example%2Ffeed"
		check := func(who, text string, named bool) {
			if !strings.Contains(text, "The site refused a poll of ") || !strings.Contains(text, "This feed waits until") || strings.Contains(text, "https://one.example/other") != named {
				t.Errorf("%s gets %s", who, text)
			}
		}
		_, text := stage.Call(t, "GET", "/pollard/feeds"+query)
		check("the operator", text, true)
		for _, accept := range []string{"application/json", "text/html"} {
			check("a viewer", stage.Get(t, "http://feeds.test/-/feeds"+query, stage.Home, "Accept", accept).Body.String(), false)
		}
	})
}
