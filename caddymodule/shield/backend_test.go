// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/fcgi"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// A backend behind reverse_proxy gets polls from Pollard, and requests that pass through as
// without a shield.
func TestShieldBeforeReverseProxy(t *testing.T) {
	var requests atomic.Pointer[http.Request]
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Store(r)
		if r.URL.Path == "/page" {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<!doctype html>")
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.Header().Set("Content-Type", "application/rss+xml")
		http.ServeContent(w, r, "", modtime, strings.NewReader(stage.FeedNamed("proxied")))
	}))
	defer backend.Close()
	site := blog + " {\nbind void/site\nfeed_shield {\norigin {\nreverse_proxy " + strings.TrimPrefix(backend.URL, "http://") + "\n}\n}\n}\n"
	stage.RunInstance(t, "", site, func(s *stage.Stage, _ string) {
		r := stage.Request("GET", "https://blog.test/feed?a=b", "Cookie", "secret", "X-Forwarded-For", "198.51.100.9", "X-Real-Ip", stage.Outside)
		stage.WantBody(t, "a reader", s.Send(r), 200, "proxied")
		poll := requests.Load()
		if poll.Host != "blog.test" || poll.RequestURI != "/feed?a=b" {
			t.Errorf("the poll was for %s%s", poll.Host, poll.RequestURI)
		}
		for name, want := range map[string]string{
			"X-Forwarded-For": "0.0.0.0", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "blog.test", "Cookie": "", "X-Real-Ip": "", "Accept-Encoding": "gzip, br, zstd",
		} {
			if got := poll.Header.Get(name); got != want {
				t.Errorf("the poll's %s is %q, want %q", name, got, want)
			}
		}
		if text := fmt.Sprint(poll.Header); strings.Contains(text, stage.Outside) || strings.Contains(text, "secret") {
			t.Errorf("the poll has something of its reader: %s", text)
		}
		stage.WantBody(t, "a page", s.Get(blog+"/page", "Cookie", "secret"), 200, "<!doctype html>")
		if own := requests.Load(); own.Header.Get("X-Forwarded-For") != stage.Outside || own.Header.Get("Cookie") != "secret" || own.Header.Get("X-Forwarded-Proto") != "http" {
			t.Errorf("the page's origin saw %v", own.Header)
		}
	})
}

// A FastCGI script gets the parameters by which PHP programs decide.
func TestShieldBeforeFastCGI(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var variables atomic.Pointer[map[string]string]
	go func() {
		_ = fcgi.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			env := fcgi.ProcessEnv(r)
			env["REQUEST_URI"], env["HTTP_HOST"], env["REMOTE_ADDR"] = r.URL.RequestURI(), r.Host, r.RemoteAddr
			if r.TLS != nil {
				env["HTTPS"] = "on"
			}
			env["HTTP_COOKIE"] = r.Header.Get("Cookie")
			variables.Store(&env)
			w.Header().Set("Content-Type", "text/xml")
			_, _ = io.WriteString(w, stage.FeedNamed(r.URL.RequestURI()))
		}))
	}()
	root := t.TempDir()
	stage.WriteFile(t, root+"/index.php", "<?php")
	site := blog + " {\nbind void/site\nfeed_shield {\norigin {\nroot * " + root + "\nphp_fastcgi " + l.Addr().String() + "\n}\n}\n}\n"
	stage.RunInstance(t, "", site, func(s *stage.Stage, _ string) {
		for _, target := range []string{"/feed/?a=b", "/comments/feed/"} {
			for range 2 {
				variables.Store(nil)
				stage.WantBody(t, "a reader", s.Get("https://blog.test"+target, "Cookie", "secret"), 200, "<title>"+target+"</title>")
			}
			if variables.Load() != nil {
				t.Errorf("%s: the second reader reached the script", target)
			}
		}
		s.Get("https://blog.test/feed/other")
		env := *variables.Load()
		for name, want := range map[string]string{
			"REQUEST_URI": "/feed/other", "HTTP_HOST": "blog.test", "HTTPS": "on", "HTTP_COOKIE": "", "SCRIPT_FILENAME": root + "/index.php", "DOCUMENT_ROOT": root,
		} {
			if env[name] != want {
				t.Errorf("%s is %q, want %q", name, env[name], want)
			}
		}
		if strings.Contains(fmt.Sprint(env), stage.Outside) {
			t.Errorf("the script was told the reader's address: %v", env)
		}
	})
}
