// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/upstream"
)

// A whole Caddy, from the Caddyfile to the poll: feeds at a path and by URL, also
// behind handle_path, over a reload, a reload that fails, and the end.
func TestCaddy(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		origin := origintest.New(origintest.OK(origintest.Feed(3, ""), "ETag", `"one"`))
		release, err := poller.Adopt(dir, poller.Parts{Origin: upstream.New(upstream.WithTransport(origin))})
		if err != nil {
			t.Fatal(err)
		}
		defer release()

		load := func(interval, apps string) error {
			config, err := stage.Adapt(t, fmt.Sprintf(`{
				admin off
				persist_config off
				auto_https off
				pollard {
					store sqlite %s
					min_interval %s
					jitter 0
				}
			}
			http://feeds.test {
				bind void/feeds
				encode gzip
				handle_path /feeds/* {
					feed_gateway {
						clients any
					}
				}
				feed_gateway {
					feed /one.xml https://one.example/feed
				}
			}`, dir, interval))
			if err != nil {
				t.Fatal(err)
			}
			err = caddy.Load(bytes.Replace(config, []byte(`"apps":{`), []byte(`"apps":{`+apps), 1), true)
			synctest.Wait()
			return err
		}
		interval := func(path string) string {
			w := stage.Get(t, "http://feeds.test"+path, stage.Home)
			if w.Code != http.StatusOK {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
			return w.Header().Get("Cache-Control")
		}
		if err := load("2h", ""); err != nil {
			t.Fatal(err)
		}
		defer caddy.Stop()
		if got := interval("/one.xml"); got != "max-age=7200" {
			t.Errorf("at a path: %s", got)
		}
		if got := interval("/feeds/https://two.example/a//b"); got != "max-age=7200" {
			t.Errorf("by URL: %s", got)
		}
		if w := stage.Get(t, "http://feeds.test/one.xml", stage.Home, "If-None-Match", stage.Get(t, "http://feeds.test/one.xml", stage.Home).Header().Get("Etag")); w.Code != http.StatusNotModified {
			t.Errorf("a conditional request got %d", w.Code)
		}
		time.Sleep(time.Hour)
		if err := load("3h", ""); err != nil {
			t.Fatal(err)
		}
		if got := interval("/one.xml"); got != "max-age=3600" {
			t.Errorf("after a reload the poll before it is forgotten: %s", got)
		}
		time.Sleep(time.Hour + time.Minute)
		if got := interval("/one.xml"); got != "max-age=3540" {
			t.Errorf("when the poll was planned under the old floor: %s", got)
		}
		time.Sleep(time.Hour)
		if got := interval("/one.xml"); got != "max-age=10800" {
			t.Errorf("with the new interval: %s", got)
		}
		// Another app that cannot start: the configuration before it stays in force.
		// Apps start in random order, so ours has started in some of these.
		for range 5 {
			if err := load("4h", `"failing":{},`); err == nil {
				t.Fatal("a configuration that cannot start was loaded")
			}
		}
		time.Sleep(4 * time.Hour)
		if got := interval("/one.xml"); got != "max-age=10800" {
			t.Errorf("after a reload that failed: %s", got)
		}
		want := "https://one.example/feed https://two.example/a//b https://one.example/feed https://one.example/feed"
		var urls []string
		for _, r := range origin.Requests() {
			urls = append(urls, r.URL)
		}
		if got := strings.Join(urls, " "); got != want {
			t.Errorf("the origins saw %s, want %s", got, want)
		}
	})
}
