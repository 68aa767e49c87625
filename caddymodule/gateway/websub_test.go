// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/origintest"
)

// A hub is a stranger, and reaches the callback at a gateway that lets in one client alone. The
// access log does not show the callback.
func TestHubReachesGateway(t *testing.T) {
	hub, title := new(origintest.Hub), "One"
	web := func(r *http.Request) (int, string, http.Header) {
		if r.URL.Host == "hub.example" {
			w := httptest.NewRecorder()
			hub.ServeHTTP(w, r)
			return w.Code, "", w.Header()
		}
		return 200, stage.FeedNamed(title), http.Header{
			"Content-Type": {"application/rss+xml"}, "Cache-Control": {"max-age=86400"},
			"Link": {`<https://hub.example/>; rel="hub"`, `<https://one.example/feed>; rel="self"`},
		}
	}
	stage.RunGateways(t, web, func(t *testing.T, o *stage.Stage) {
		s := &stage.Stage{T: t}
		hub.Callbacks = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			sent := stage.Request(r.Method, r.URL.String())
			sent.Body = r.Body
			maps.Copy(sent.Header, r.Header)
			stage.Serve(t, 0, w, sent)
		})
		log := filepath.Join(o.Dir, "access.log")
		load := func(app string) {
			t.Helper()
			if err := o.LoadSites("", app, fmt.Sprintf(`http://feeds.test {
	bind void/feeds
	log {
		output file %s {
			roll_disabled
		}
	}
	feed_gateway {
		clients 192.0.2.99
		token alice s3cret-of-alice-0001
		feed /one.xml https://one.example/feed
		pages off
	}
}`, log)); err != nil {
				t.Fatal(err)
			}
		}
		load("")
		stage.WantBody(t, "without the line", s.Get("http://feeds.test/-/websub/"+strings.Repeat("A", 43)), 404, "no such path")
		load("websub http://feeds.test")
		stage.WantBody(t, "the feed", s.Get("http://feeds.test/one.xml"), 200, "<title>One<")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := len(hub.Requests()); n != 1 {
			t.Fatalf("%d requests to the hub", n)
		}
		callback := hub.Last().Form.Get("hub.callback")
		stage.WantBody(t, "another token", s.Get("http://feeds.test/-/websub/"+strings.Repeat("A", 43)), 404, "no such subscription")
		stage.WantBody(t, "PUT", s.Send(stage.Request("PUT", callback)), 405, "")

		title = "Two"
		if w := hub.Push(hub.Last(), "push"); w.Code != 202 {
			t.Errorf("a push gets %d %s", w.Code, w.Body)
		}
		time.Sleep(5 * time.Second)
		stage.WantBody(t, "after a push", s.Get("http://feeds.test/one.xml"), 200, "<title>Two<")
		if w := hub.Push(hub.Last(), strings.Repeat("x", 15<<20+1)); w.Code != 413 {
			t.Errorf("a large push gets %d", w.Code)
		}

		load("")
		if w := hub.Push(hub.Last(), "push"); w.Code != 410 {
			t.Errorf("a push gets %d when the line is removed", w.Code)
		}
		token := callback[strings.LastIndexByte(callback, '/')+1:]
		text, err := os.ReadFile(log)
		if err != nil || strings.Contains(string(text), token) || strings.Count(string(text), "/-/websub/***") != 7 {
			t.Errorf("the access log: %v\n%s", err, text)
		}
	})
}
