// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
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

// A client that sends a form which is refused sees why, although it reads nothing before it has sent all.
func TestRefusalOfALongForm(t *testing.T) {
	at := loopback.FreeAddress(t)
	stage.RunInstance(t, "", "http://"+at+" {\nbind 127.0.0.1\nfeed_gateway {\ntoken alice "+secret+"\n}\n}\n", func(*stage.Stage, string) {
		list := "--b\r\nContent-Disposition: form-data; name=\"opml\"; filename=\"a\"\r\n\r\n" + strings.Repeat("<!-- -->", 3<<20)
		for _, tt := range []struct {
			path, contentType, origin string
			status                    int
		}{
			{"/-/opml", "multipart/form-data; boundary=b", "http://" + at, 413},
			{"/-/opml", "application/pdf", "http://" + at, 400},
			{"/-/opml", "multipart/form-data; boundary=b", "http://evil.example", 403},
			{"/~wrong-token/-/opml", "multipart/form-data; boundary=b", "http://" + at, 403},
			{"/-/refresh", "application/x-www-form-urlencoded", "http://" + at, 400},
			{"/-/savings", "application/x-www-form-urlencoded", "http://" + at, 405},
		} {
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nOrigin: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", tt.path, at, tt.origin, tt.contentType, len(list), list)
			if err != nil {
				t.Errorf("%s as %s from %s: %v", tt.path, tt.contentType, tt.origin, err)
			} else if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != tt.status {
				t.Errorf("%s as %s from %s: %v %v, want %d", tt.path, tt.contentType, tt.origin, resp, err, tt.status)
			}
			conn.Close()
		}
	})
}
