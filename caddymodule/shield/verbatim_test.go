// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
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

// changedFields are the fields of responses that a shield changes, as docs/shield.md lists them.
var changedFields = []string{"Cache-Status", "Etag", "Last-Modified", "Cache-Control", "Vary", "Content-Length", "Accept-Ranges", "Via", "Server", "X-Content-Type-Options", "Date", "Alt-Svc"}

var large = bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // 16 MiB

// everything is a site with a feed, and much that is none.
func everything(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	sent, _ := io.ReadAll(r.Body)
	h.Set("X-Site", "kept")
	switch part, _, _ := strings.Cut(r.URL.Path[1:], "/"); part {
	case "moved":
		http.Redirect(w, r, "/feed.xml", http.StatusFound)
		return
	case "none":
		http.Error(w, "nothing", http.StatusNotFound)
		return
	case "page":
		h.Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, "<!doctype html>%s %q %s", r.Method, sent, r.Header.Get("Cookie"))
		return
	case "large.mp3":
		h.Set("Content-Type", "audio/mpeg")
		h.Set("Etag", `"large"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(large))
		return
	case "trailers":
		h.Set("Trailer", "Grpc-Status")
		h.Set("Content-Type", "application/grpc")
		fmt.Fprintf(w, "%d bytes", len(sent))
		h.Set("Grpc-Status", "0")
		return
	case "hints":
		h.Set("Link", "</style.css>; rel=preload")
		w.WriteHeader(http.StatusEarlyHints)
		h.Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html>")
		return
	case "echo":
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		line, _ := buffered.ReadString('\n')
		_, _ = io.WriteString(conn, strings.ToUpper(line))
		return
	case "mine":
		h.Set("Cache-Control", "private")
		h.Set("Set-Cookie", "a=b")
	}
	h.Set("Content-Type", "application/rss+xml")
	h.Set("Vary", "Cookie, Origin")
	text := stage.FeedNamed("feed")
	if r.Method != "GET" && r.Method != "HEAD" || len(sent) > 0 || r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" {
		text = stage.FeedNamed(fmt.Sprintf("%s %q %s %s", r.Method, sent, r.Header.Get("Authorization"), r.Header.Get("Cookie")))
	}
	h.Set("Etag", fmt.Sprintf(`"%x"`, len(text)))
	http.ServeContent(w, r, "", modtime, strings.NewReader(text))
}

// sentRequest is a request to such a site.
type sentRequest struct {
	method, path, body string
	header             []string
}

func requestsOfAll() (all []sentRequest) {
	headers := [][]string{
		nil, {"Cookie", "session=alice"}, {"Authorization", "Basic YTpi"}, {"Origin", "https://o.example"}, {"Accept-Encoding", "identity"},
		{"Accept-Language", "de"}, {"If-None-Match", `"nothing"`}, {"If-None-Match", "*"}, {"If-Modified-Since", "Mon, 01 Jan 1990 00:00:00 GMT"},
		{"If-Match", `"nothing"`}, {"If-Unmodified-Since", "Mon, 01 Jan 1990 00:00:00 GMT"}, {"Cache-Control", "no-cache"}, {"X-Forwarded-For", "10.0.0.1"},
		{"Host", "other.example"}, {"X-Forwarded-Host", "other.example"}, {"Range", "bytes=0-9"}, {"Range", "bytes=5-"}, {"Range", "bytes=9999-"}, {"Range", "bytes=0-9", "If-Range", `"nothing"`},
	}
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"} {
		for _, path := range []string{"/feed.xml", "/feed.xml?a=%20b", "/page", "/moved/feed", "/none/feed", "/mine/feed"} {
			for i, header := range headers {
				body := ""
				if method == "POST" || method == "PUT" || i == 0 && method == "GET" && path == "/page" {
					body = "hello"
				}
				all = append(all, sentRequest{method, path, body, header})
			}
		}
	}
	return append(all,
		sentRequest{"GET", "/large.mp3", "", []string{"Range", "bytes=15000000-15000999"}}, sentRequest{"GET", "/large.mp3", "", []string{"Range", "bytes=-10"}},
		sentRequest{"GET", "/large.mp3", "", nil}, sentRequest{"HEAD", "/large.mp3", "", nil},
		sentRequest{"POST", "/trailers", strings.Repeat("x", 100_000), nil}, sentRequest{"GET", "/trailers", "", nil}, sentRequest{"GET", "/hints", "", nil},
	)
}

// A site behind a shield answers as it does without one, in each protocol, but for those fields.
func TestVerbatimOverTheNetwork(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(everything))
	defer backend.Close()
	at := []string{loopback.FreeAddress(t), loopback.FreeAddress(t)}
	proxy := "reverse_proxy " + backend.URL + "\n"
	sites := ""
	for i, block := range []string{proxy, "feed_shield {\norigin {\n" + proxy + "}\n}\n"} {
		sites += "https://" + at[i] + " {\nbind 127.0.0.1\n" + stage.TLS(t) + block + "}\n"
	}
	stage.RunInstance(t, "", sites, func(*stage.Stage, string) {
		clients := stage.Clients(t)
		for _, protocol := range stage.Protocols {
			send := func(site int, q sentRequest) string {
				r, err := http.NewRequestWithContext(context.Background(), q.method, "https://"+at[site]+q.path, io.MultiReader(strings.NewReader(q.body)))
				if err != nil {
					t.Fatal(err)
				}
				if q.body == "" {
					r.Body = nil
				}
				for i := 0; i < len(q.header); i += 2 {
					r.Header.Set(q.header[i], q.header[i+1])
				}
				r.Host = r.Header.Get("Host")
				r.Header.Del("Host")
				resp, err := clients[protocol].Do(r)
				if err != nil {
					t.Fatal(protocol, q.method, q.path, err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				for _, name := range changedFields {
					resp.Header.Del(name)
				}
				if resp.StatusCode == http.StatusNotModified {
					resp.Header = nil // RFC 9110 section 15.4.5 asks for no other field
				}
				return fmt.Sprint(resp.Proto, resp.StatusCode, resp.Header, resp.Trailer, len(text), string(text[:min(len(text), 1000)]), err)
			}
			send(1, sentRequest{"GET", "/none", "", nil})         // connects: only requests are broken off
			for _, path := range []string{"/feed.xml", "/page"} { // clients that leave change nothing for others
				ctx, leave := context.WithTimeout(context.Background(), time.Millisecond)
				r, _ := http.NewRequestWithContext(ctx, "GET", "https://"+at[1]+path, nil)
				if resp, err := clients[protocol].Do(r); err == nil {
					resp.Body.Close()
				}
				leave()
			}
			for _, q := range requestsOfAll() {
				alone := q
				if len(q.header) > 0 && q.header[0] == "Range" && strings.HasPrefix(q.path, "/feed.xml") && (q.method == "GET" || q.method == "HEAD") {
					alone.header = nil // RFC 9110 section 14.2: a feed from the cache is always whole
				}
				if want, got := send(0, alone), send(1, q); got != want {
					t.Errorf("%s %s %v over %s:\n%s\nwithout a shield\n%s", q.method, q.path, q.header, protocol, got, want)
				}
			}
		}
		for _, address := range at {
			if got := upgraded(t, address); got != "HELLO\n" {
				t.Errorf("%s after an upgrade: %q", address, got)
			}
		}
	})
}

// upgraded returns what a site answers to hello in a protocol of its own.
func upgraded(t *testing.T, address string) string {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	fmt.Fprintf(conn, "GET /echo HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello\n", address)
	answers := bufio.NewReader(conn)
	resp, err := http.ReadResponse(answers, nil)
	if err != nil || resp.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%s: %v, %v", address, resp, err)
	}
	line, _ := answers.ReadString('\n')
	return line
}
