// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// A shield whose origin leads back to it, at once, under another name or through a proxy, refuses the
// request that comes back. It answers requests that have passed another shield, or come from a gateway's poll.
func TestOriginLeadsBack(t *testing.T) {
	at := loopback.FreeAddress(t)
	_, port, _ := strings.Cut(at, ":")
	var relayed atomic.Int64
	relay := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		relayed.Add(1)
		r.SetURL(&url.URL{Scheme: "http", Host: at})
		r.Out.Host = "relayed.example"
	}})
	defer relay.Close()
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		_, _ = io.WriteString(w, stage.FeedNamed(fmt.Sprint(r.Method, " by ", strings.Count(fmt.Sprint(r.Header["Cdn-Loop"]), "pollard; id="))))
	}))
	defer backend.Close()
	site := func(name, origin string) string {
		return "http://" + name + ":" + port + " {\nbind 127.0.0.1\nroute {\nrequest_header +X-Count 1\nfeed_shield {\norigin {\nreverse_proxy " + origin + "\n}\nstatus /status\n}\n}\n}\n"
	}
	sites := site("self.example", at) + site("other.example:"+port+", http://relayed.example", relay.URL) +
		site("127.0.0.1", backend.URL) + site("outer.example", at+" {\nheader_up Host 127.0.0.1\n}")
	stage.RunInstance(t, "", sites, func(*stage.Stage, string) {
		send := func(method, host, path string) (int, string) {
			t.Helper()
			r, err := http.NewRequestWithContext(context.Background(), method, "http://"+at+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Host = host + ":" + port
			r.Header.Set("Cdn-Loop", "pollard; id=AAAAAAAAAAAAAAAA, other.example; abuse=1")
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.StatusCode, string(text)
		}
		for _, tt := range []struct{ method, path string }{{"GET", "/feed.xml"}, {"GET", "/feed.xml"}, {"POST", "/feed.xml"}, {"GET", "/page"}} {
			for _, host := range []string{"self.example", "other.example"} {
				relayed.Store(0)
				status, text := send(tt.method, host, tt.path)
				if status != 508 || !strings.Contains(text, "the origin block of feed_shield at "+host) && tt.method == "GET" && tt.path == "/feed.xml" || strings.Count(text, "\n") != 1 {
					t.Errorf("%s %s of %s: %d %q", tt.method, tt.path, host, status, text)
				}
				if n := relayed.Load(); n > 1 {
					t.Errorf("%s %s of %s: the origin was asked %d times", tt.method, tt.path, host, n)
				}
			}
		}
		for method, want := range map[string]string{"GET": "GET by 1", "POST": "POST by 3"} { // a poll has nothing of a reader
			if status, text := send(method, "outer.example", "/feed.xml"); status != 200 || !strings.Contains(text, want) {
				t.Errorf("%s at a shield in front of another one: %d %q", method, status, text)
			}
		}
		if _, text := send("GET", "self.example", "/status/feeds"); !strings.Contains(text, "leads back to this shield ("+at+")") {
			t.Errorf("the page does not say so: %.500s", text)
		}
	})
}
