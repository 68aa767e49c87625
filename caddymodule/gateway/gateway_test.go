// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

func TestGatewayAnswers(t *testing.T) {
	onGateway(t, `
			feed /one.xml https://one.example/feed
			feed /gone.xml https://gone.example/gone
			feed /page.xml https://page.example/page
			feed /ä%20b.xml https://umlaut.example/feed
			token alice s3cret-of-alice-0001
		`, func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		tests := []struct {
			name   string
			method string
			target string
			client string
			status int
			body   string
		}{
			{"a path", "GET", "/one.xml", stage.Outside, 200, "<rss"},
			{"its query is ignored", "GET", "/one.xml?_=1", stage.Outside, 200, "<rss"},
			{"HEAD", "HEAD", "/one.xml", stage.Outside, 200, ""},
			{"a path with escapes", "GET", "/%C3%A4%20b.xml", stage.Outside, 200, "<rss"},
			{"by URL", "GET", "/https://two.example/feed", stage.Home, 200, "<rss"},
			{"by URL from nowhere", "GET", "/https://two.example/feed", "", 403, "does not cover a client without an IP address"},
			{"with a wrong token", "GET", "/~secret/https://two.example/feed", stage.Home, 403, "the token in this URL is not known"},
			{"no feed URL", "GET", "/https:///feed", stage.Home, 400, "not a feed URL"},
			{"no path", "GET", "/two.xml", stage.Home, 404, "no such path"},
			{"a picture", "GET", "/https://two.example/favicon.ico", stage.Home, 404, "not the address of a feed"},
			{"gone", "GET", "/gone.xml", stage.Home, 410, "410"},
			{"a page", "GET", "/page.xml", stage.Home, 502, "an HTML page"},
			{"POST", "POST", "/one.xml", stage.Home, 405, "GET or HEAD"},
		}
		for _, tt := range tests {
			w := ask(t, g, tt.method, tt.target, tt.client)
			h := w.Header()
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) {
				t.Errorf("%s: got %d %q, want %d %q", tt.name, w.Code, w.Body, tt.status, tt.body)
			}
			if h.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: other origins are let in without cors", tt.name)
			}
			if tt.status < 400 {
				continue
			}
			if kind := h.Get("Content-Type"); kind != "text/plain; charset=utf-8" {
				t.Errorf("%s: the error is %s", tt.name, kind)
			}
			if c := h.Get("Cache-Control"); c != "no-store" {
				t.Errorf("%s: the error may be kept: %q", tt.name, c)
			}
			if strings.Count(w.Body.String(), "\n") != 1 {
				t.Errorf("%s: the error is not one line: %q", tt.name, w.Body)
			}
			if allow := h.Get("Allow"); (tt.status == 405) != (allow == "GET, HEAD") {
				t.Errorf("%s: Allow: %q", tt.name, allow)
			}
			if wait := h.Get("Retry-After"); (tt.status == 502) != (wait != "") {
				t.Errorf("%s: Retry-After: %q", tt.name, wait)
			}
		}
	})
}

// A feed at the root of a host can be added beside another one of that host, by the same client. A reader
// that looks for the icon of a site there costs it one poll, and nothing counts as failing.
func TestFeedsAtTheRootOfAHost(t *testing.T) {
	onGateway(t, "token alice "+secret, func(t *testing.T, g *Gateway, o *origintest.Origin) {
		for _, tt := range []struct {
			target string
			status int
		}{
			{"/http://one.example/comments/feed", 200},
			{"/http://one.example/?feed=rss2", 200},
			{"/http://one.example/?format=feed&type=rss", 200},
			{"/http://one.example?feed=rdf", 200},
			{"/http://one.example/", 200},
			{"/http://empty.example/", 502},
		} {
			for _, polls := range []int{1, 0} {
				before := len(o.Requests())
				w := ask(t, g, "GET", tt.target, "192.168.1.8", "Accept", "*/*")
				if got := len(o.Requests()) - before; w.Code != tt.status || got != polls {
					t.Errorf("%s: %d, %d polls, want %d, %d", tt.target, w.Code, got, tt.status, polls)
				}
			}
		}
	})
}

// A browser that shows a feed learns its charset, and readers get what the origin has sent.
func TestBrowsersLearnTheCharset(t *testing.T) {
	for _, tt := range []struct{ declaration, contentType, browser, reader string }{
		{`<?xml version="1.0" encoding="ISO-8859-1"?>`, "application/rss+xml", "application/rss+xml; charset=ISO-8859-1", "application/rss+xml"},
		{`<?xml version="1.0"?>`, "application/rss+xml", "application/rss+xml; charset=utf-8", "application/rss+xml"},
		{"", "text/xml; charset=koi8-r", "text/xml; charset=koi8-r", "text/xml; charset=koi8-r"},
	} {
		web := func(*http.Request) (int, string, http.Header) {
			return 200, tt.declaration + strings.TrimPrefix(stage.Sample, `<?xml version="1.0"?>`), http.Header{"Content-Type": {tt.contentType}}
		}
		stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
			o.MustLoadFeeds("", "", "feed /one.xml https://one.example/feed")
			for accept, want := range map[string]string{"text/html,*/*;q=0.8": tt.browser, "*/*": tt.reader} {
				w := stage.Get(t, "http://feeds.test/one.xml", stage.Home, "Accept", accept, "Accept-Encoding", "gzip")
				if got := w.Header().Get("Content-Type"); w.Code != 200 || got != want || w.Body.Len() == 0 {
					t.Errorf("%s, %s, Accept %s: %d %s, want %s", tt.declaration, tt.contentType, accept, w.Code, got, want)
				}
				again := stage.Get(t, "http://feeds.test/one.xml", stage.Home, "Accept", accept, "If-None-Match", w.Header().Get("ETag"))
				if again.Code != 304 {
					t.Errorf("Accept %s: %d with its ETag", accept, again.Code)
				}
			}
		})
	}
}

func TestGatewayCORS(t *testing.T) {
	onGateway(t, "cors\nfeed /one.xml https://one.example/feed", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		for _, target := range []string{"/one.xml", "/https:///nothing"} {
			if got := ask(t, g, "GET", target, stage.Home).Header().Get("Access-Control-Allow-Origin"); got != "*" {
				t.Errorf("%s: Access-Control-Allow-Origin: %q", target, got)
			}
		}
		w := ask(t, g, "OPTIONS", "/one.xml", stage.Home, "Access-Control-Request-Method", "GET", "Access-Control-Request-Headers", "if-none-match")
		if w.Code != http.StatusNoContent || !strings.Contains(w.Header().Get("Access-Control-Allow-Headers"), "If-None-Match") {
			t.Errorf("preflight: %d %v", w.Code, w.Header())
		}
		if allow := ask(t, g, "DELETE", "/one.xml", stage.Home).Header().Get("Allow"); allow != "GET, HEAD, OPTIONS" {
			t.Errorf("Allow: %q", allow)
		}
	})
}

func TestOriginLearnsOfSubscribers(t *testing.T) {
	sameKey(t)
	onGateway(t, "feed /one.xml https://one.example/feed\nclients any", func(t *testing.T, g *Gateway, o *origintest.Origin) {
		ask(t, g, "GET", "/one.xml", stage.Home, "User-Agent", "FreshRSS/1.24")
		ask(t, g, "GET", "/https://one.example/feed", stage.Outside, "User-Agent", "NetNewsWire")
		ask(t, g, "GET", "/one.xml", stage.Home, "User-Agent", "FreshRSS/1.25")
		time.Sleep(25 * time.Hour)
		ask(t, g, "GET", "/one.xml", stage.Home, "User-Agent", "FreshRSS/1.25")
		if n := len(o.Requests()); n != 2 {
			t.Fatalf("%d polls, want 2", n)
		}
		// At the first poll no reader had the feed.
		if first, second := o.Requests()[0].Header.Get("User-Agent"), o.Requests()[1].Header.Get("User-Agent"); strings.Contains(first, "subscriber") || !strings.Contains(second, "2 subscribers") {
			t.Errorf("the polls said %q and %q", first, second)
		}
	})
}

// A client that leaves while the first poll waits for its turn is answered 499, as any that leaves.
func TestClientLeavesTheQueue(t *testing.T) {
	onGateway(t, "clients any", func(t *testing.T, g *Gateway, _ *origintest.Origin) {
		ask(t, g, "GET", "/https://one.example/a", stage.Home)
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		r := httptest.NewRequest("GET", "/https://one.example/b", nil).WithContext(left)
		if w := send(t, g, r, stage.Home, nil); w.Code != door.StatusClientClosed {
			t.Errorf("got %d %s", w.Code, w.Body)
		}
	})
}

func TestHandlerBeforeStartAndAfterEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, a, _ := gatewayOf(t, "feed /one.xml https://one.example/feed")
		began := time.Now()
		w := ask(t, g, "GET", "/one.xml", stage.Home)
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || time.Since(began) != 10*time.Second {
			t.Errorf("never started: %d %s after %v", w.Code, w.Body, time.Since(began))
		}
		early := make(chan int)
		go func() { early <- ask(t, g, "GET", "/one.xml", stage.Home).Code }()
		time.Sleep(time.Second)
		if err := a.Start(); err != nil {
			t.Fatal(err)
		}
		if code := <-early; code != 200 {
			t.Errorf("a request that came a second too early got %d", code)
		}
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
		if code := ask(t, g, "GET", "/one.xml", stage.Home).Code; code != 200 {
			t.Errorf("between stop and clean-up: %d", code)
		}
		if err := a.Cleanup(); err != nil {
			t.Error(err)
		}
		if w := ask(t, g, "GET", "/https://two.example/", stage.Home); w.Code != 503 {
			t.Errorf("after the end: %d %s", w.Code, w.Body)
		}
	})
}

// A reader of an address that has become an alias is sent the version of the new one, although a date that it
// made up is later: it may have had an earlier version at that time.
func TestDatesAtAnAlias(t *testing.T) {
	if testing.Short() {
		t.Skip("twelve days of a whole gateway")
	}
	onGateway(t, "feed /old.xml https://old.example/feed", func(t *testing.T, g *Gateway, o *origintest.Origin) {
		o.Answer = func(r *http.Request) origintest.Answer {
			if r.URL.Host == "new.example" {
				return origintest.OK(stage.Sample)
			}
			return origintest.Status(http.StatusMovedPermanently, "Location", "https://new.example"+r.URL.Path)
		}
		for range 12 {
			for _, target := range []string{"/old.xml", "/https://other.example/feed", "/https://new.example/feed"} {
				ask(t, g, "GET", target, stage.Home)
			}
			time.Sleep(25 * time.Hour)
		}
		for target, want := range map[string]int{"/old.xml": 200, "/https://other.example/feed": 200, "/https://new.example/feed": 304} {
			made := time.Now().UTC().Format(http.TimeFormat)
			if w := ask(t, g, "GET", target, stage.Home, "If-Modified-Since", made); w.Code != want {
				t.Errorf("%s: got %d, want %d", target, w.Code, want)
			}
		}
	})
}
