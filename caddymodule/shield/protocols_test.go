// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// A shield, its pages and defend answer HTTP/1.1, HTTP/2 and HTTP/3 alike. A body of unknown length
// that is empty is none.
func TestEveryProtocol(t *testing.T) {
	at := loopback.FreeAddress(t)
	site := "https://" + at + " {\nbind 127.0.0.1\n" + stage.TLS(t) + "feed_shield {\norigin {\nbackend\n}\nmin_interval 1h\nping /ping\nstatus /status\ndefend {\nfleet Crawler\n}\n}\n}\n"
	origin := func(w http.ResponseWriter, r *http.Request) error {
		sent, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		return stage.Feed(stage.FeedNamed(fmt.Sprintf("%s %q", r.Method, sent)))(w, r)
	}
	stage.RunInstance(t, "", site, func(s *stage.Stage, _ string) {
		s.Now(origin)
		clients := stage.Clients(t)
		for _, protocol := range stage.Protocols {
			send := func(method, path, agent string, body io.Reader, header ...string) (status int, cached, text string) {
				t.Helper()
				r, err := http.NewRequestWithContext(context.Background(), method, "https://"+at+path, body)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("User-Agent", agent)
				for i := 0; i < len(header); i += 2 {
					r.Header.Set(header[i], header[i+1])
				}
				resp, err := clients[protocol].Do(r)
				if err != nil {
					t.Fatal(protocol, err)
				}
				defer resp.Body.Close()
				got, err := io.ReadAll(resp.Body)
				if err != nil || resp.Proto != protocol {
					t.Fatal(protocol, resp.Proto, err)
				}
				return resp.StatusCode, resp.Header.Get("Cache-Status"), string(got)
			}
			feed := "/" + strings.ReplaceAll(strings.ToLower(protocol), "/", "") + "/feed.xml"
			for i, want := range []int{200, 200, 429, 429} {
				if status, cached, text := send("GET", feed, "Careless/1.0", nil); status != want || want == 200 && (cached == "" || !strings.Contains(text, `GET ""`)) {
					t.Errorf("%s: request %d: %d %q %s, want %d", protocol, i, status, cached, text, want)
				}
			}
			for i, want := range []int{200, 429} {
				if status, _, _ := send("GET", feed, "Crawler/1.0", nil); status != want {
					t.Errorf("%s: request %d of a fleet: %d, want %d", protocol, i, status, want)
				}
			}
			s.Expect(1, protocol+": one poll")

			if status, cached, _ := send("GET", feed, "Empty/1.0", io.MultiReader()); status != 200 || !strings.Contains(cached, "hit") {
				t.Errorf("%s: an empty body: %d %q", protocol, status, cached)
			}
			s.Expect(0, protocol+": an empty body")
			if status, cached, text := send("GET", feed, "Writer/1.0", io.MultiReader(strings.NewReader("hello"))); status != 200 || cached != "" || !strings.Contains(text, `GET "hello"`) {
				t.Errorf("%s: a body: %d %q %s", protocol, status, cached, text)
			}
			reading, writing := io.Pipe()
			go func() {
				time.Sleep(bodyWait + bodyWait/10)
				_, _ = io.WriteString(writing, "late")
				writing.Close()
			}()
			if status, cached, text := send("GET", feed, "Slow/1.0", reading); status != 200 || cached != "" || !strings.Contains(text, `GET "late"`) {
				t.Errorf("%s: a late body: %d %q %s", protocol, status, cached, text)
			}
			s.Expect(2, protocol+": bodies are passed on")

			if status, _, _ := send("POST", "/ping", "Publisher/1.0", strings.NewReader("hub.mode=publish&hub.url=https://"+at+feed), "Content-Type", "application/x-www-form-urlencoded"); status != 204 {
				t.Errorf("%s: a ping: %d", protocol, status)
			}
			if status, _, text := send("GET", "/status/feeds", "Person/1.0", nil, "Accept", "application/json"); status != 200 || !strings.Contains(text, feed) {
				t.Errorf("%s: the page: %d %s", protocol, status, text)
			}
		}
	})
}
