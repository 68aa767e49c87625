// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// A gateway and its pages answer HTTP/1.1, HTTP/2 and HTTP/3 alike, whether a request has no body or
// an empty one of unknown length.
func TestGatewayInEveryProtocol(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/rss+xml")
		_, _ = io.WriteString(w, stage.Sample)
	}))
	defer origin.Close()
	at, feed := loopback.FreeAddress(t), origin.URL+"/feed.xml"
	site := "https://" + at + " {\nbind 127.0.0.1\n" + stage.TLS(t) + "feed_gateway {\nfeed /chosen.xml " + feed + "\n}\n}\n"
	stage.RunInstance(t, "private_upstreams 127.0.0.0/8", site, func(*stage.Stage, string) {
		clients := stage.Clients(t)
		for _, tt := range []struct {
			method, target, body string
			status               int
			part                 string
		}{
			{"GET", "/chosen.xml", "", 200, "<title>One</title>"},
			{"HEAD", "/chosen.xml", "", 200, ""},
			{"PUT", "/chosen.xml", "x", 405, ""},
			{"GET", "/" + feed, "", 200, "<title>One</title>"},
			{"GET", "/-/feeds?url=" + url.QueryEscape(feed), "", 200, "One"},
			{"POST", "/-/refresh", "url=" + url.QueryEscape(feed), 303, ""},
		} {
			for _, protocol := range stage.Protocols {
				for _, body := range []io.Reader{strings.NewReader(tt.body), io.MultiReader(strings.NewReader(tt.body))} {
					r, err := http.NewRequestWithContext(context.Background(), tt.method, "https://"+at+tt.target, body)
					if err != nil {
						t.Fatal(err)
					}
					r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
					resp, err := clients[protocol].Do(r)
					if err != nil {
						t.Fatal(protocol, tt.target, err)
					}
					text, err := io.ReadAll(resp.Body)
					resp.Body.Close()
					if err != nil || resp.Proto != protocol || resp.StatusCode != tt.status || !strings.Contains(string(text), tt.part) {
						t.Errorf("%s: %s %s: %s %d %v %.300s", protocol, tt.method, tt.target, resp.Proto, resp.StatusCode, err, text)
					}
				}
			}
		}
	})
}
