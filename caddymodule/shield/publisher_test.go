// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

// changedFields are the fields of responses that a shield changes, as docs/publishing.md lists them.
var changedFields = []string{"Cache-Status", "Etag", "Last-Modified", "Cache-Control", "Vary", "Content-Length", "Accept-Ranges", "Via", "Server", "X-Content-Type-Options", "Date", "Alt-Svc"}

// A site behind a shield answers as it does without one, in each protocol, but for those fields.
func TestNoPublisherIsWorseOff(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		sent, _ := io.ReadAll(r.Body)
		h.Set("X-Site", "kept")
		switch {
		case strings.HasPrefix(r.URL.Path, "/moved"):
			http.Redirect(w, r, "/feed.xml", http.StatusFound)
			return
		case strings.HasPrefix(r.URL.Path, "/none"):
			http.Error(w, "nothing", http.StatusNotFound)
			return
		case strings.HasPrefix(r.URL.Path, "/mine"):
			h.Set("Cache-Control", "private")
			h.Set("Set-Cookie", "a=b")
		case strings.HasPrefix(r.URL.Path, "/page"):
			h.Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprintf(w, "<!doctype html>%s %q %s", r.Method, sent, r.Header.Get("Cookie"))
			return
		}
		h.Set("Content-Type", "application/rss+xml")
		h.Set("Vary", "Cookie, Origin")
		text := stage.FeedNamed("feed")
		if r.Method != "GET" && r.Method != "HEAD" || len(sent) > 0 || r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
			text = stage.FeedNamed(fmt.Sprintf("%s %q %s %s", r.Method, sent, r.Header.Get("Authorization"), r.Header.Get("Cookie")))
		}
		h.Set("Etag", fmt.Sprintf(`"%x"`, len(text)))
		http.ServeContent(w, r, "", modtime, strings.NewReader(text))
	}))
	defer backend.Close()
	at := []string{loopback.FreeAddress(t), loopback.FreeAddress(t)}
	proxy := "reverse_proxy " + backend.URL + "\n"
	sites := ""
	for i, block := range []string{proxy, "feed_shield {\norigin {\n" + proxy + "}\n}\n"} {
		sites += "https://" + at[i] + " {\nbind 127.0.0.1\n" + stage.TLS(t) + block + "}\n"
	}
	headers := [][]string{
		nil, {"Cookie", "session=alice"}, {"Authorization", "Basic YTpi"}, {"Origin", "https://o.example"}, {"Accept-Encoding", "identity"},
		{"Accept-Language", "de"}, {"If-None-Match", `"nothing"`}, {"If-None-Match", "*"}, {"If-Modified-Since", "Mon, 01 Jan 1990 00:00:00 GMT"},
		{"If-Match", `"nothing"`}, {"If-Unmodified-Since", "Mon, 01 Jan 1990 00:00:00 GMT"}, {"Cache-Control", "no-cache"}, {"X-Forwarded-For", "10.0.0.1"},
		{"Host", "other.example"}, {"X-Forwarded-Host", "other.example"}, {"Range", "bytes=0-9"}, {"Range", "bytes=5-"}, {"Range", "bytes=9999-"}, {"Range", "bytes=0-9", "If-Range", `"nothing"`},
	}
	count := 0
	stage.RunInstance(t, "", sites, func(*stage.Stage, string) {
		clients := stage.Clients(t)
		for _, protocol := range stage.Protocols {
			send := func(site int, method, path, body string, header []string) string {
				r, err := http.NewRequestWithContext(context.Background(), method, "https://"+at[site]+path, io.MultiReader(strings.NewReader(body)))
				if err != nil {
					t.Fatal(err)
				}
				if body == "" {
					r.Body = nil
				}
				for i := 0; i < len(header); i += 2 {
					r.Header.Set(header[i], header[i+1])
				}
				r.Host = r.Header.Get("Host")
				r.Header.Del("Host")
				resp, err := clients[protocol].Do(r)
				if err != nil {
					t.Fatal(protocol, method, path, err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				for _, name := range changedFields {
					resp.Header.Del(name)
				}
				if resp.StatusCode == http.StatusNotModified {
					resp.Header = nil // RFC 9110 section 15.4.5 asks for no other field
				}
				return fmt.Sprint(resp.Proto, resp.StatusCode, resp.Header, string(text), err)
			}
			// Connect: over HTTP/3, requests that wait for a connection fail with the client that began it and left.
			send(1, "HEAD", "/none", "", nil)
			for _, path := range []string{"/feed.xml", "/page"} { // clients that leave change nothing for others
				ctx, leave := context.WithTimeout(context.Background(), time.Millisecond)
				r, _ := http.NewRequestWithContext(ctx, "GET", "https://"+at[1]+path, nil)
				if resp, err := clients[protocol].Do(r); err == nil {
					resp.Body.Close()
				}
				leave()
			}
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
				for _, path := range []string{"/feed.xml", "/feed.xml?a=%20b", "/page", "/moved/feed", "/none/feed", "/mine/feed"} {
					for i, header := range headers {
						body := ""
						if method == "POST" || method == "PUT" || i == 0 && method == "GET" && path == "/page" {
							body = "hello"
						}
						alone := header
						if len(header) > 0 && header[0] == "Range" && strings.HasPrefix(path, "/feed.xml") && (method == "GET" || method == "HEAD") {
							alone = nil // RFC 9110 section 14.2: a feed from the cache is always whole
						}
						want, got := send(0, method, path, body, alone), send(1, method, path, body, header)
						if count++; got != want {
							t.Errorf("%s %s %v over %s:\n%s\nwithout a shield\n%s", method, path, header, protocol, got, want)
						}
					}
				}
			}
		}
	})
	t.Log(count, "requests")
}
