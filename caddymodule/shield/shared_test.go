// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

var plainCache = stage.ShieldedSite(blog, "{\n\t\trfc9111\n\t}")

// In rfc9111 mode HTTP freshness alone decides, for anything.
func TestSharedStores(t *testing.T) {
	stage.Run(t, plainCache, stage.Plain(200, "hello", "Content-Type", "text/plain", "Cache-Control", "max-age=600", "ETag", `"1"`, "X-Own", "kept"), func(s *stage.Stage) {
		for range 3 {
			w := s.Get(blog+"/page?a=b", "X-Asked", "yes")
			stage.WantBody(t, "a page", w, 200, "hello")
			if w.Header().Get("X-Own") != "kept" || !strings.Contains(w.Header().Get("Cache-Status"), "Pollard") {
				t.Errorf("its header: %v", w.Header())
			}
		}
		first := s.Expect(1, "three readers")[0]
		if first.Header.Get("X-Asked") != "yes" || first.RemoteAddr != nobody || first.Header["User-Agent"] != nil || first.Host != "blog.test" {
			t.Errorf("the origin saw %v from %s (%s) for %s", first.Header, first.RemoteAddr, poller.Client(first.Request), first.Host)
		}
		s.Get("http://evil.test/page?a=b")
		s.Get(blog+"/page?a=b", "Host", "blog.test:9999")
		s.Expect(0, "another port in Host")
		time.Sleep(11 * time.Minute)
		s.Get(blog + "/page?a=b")
		if again := s.Expect(1, "a stale page")[0]; again.Header.Get("If-None-Match") != `"1"` {
			t.Errorf("it was not validated: %v", again.Header)
		}
		// Two names of a page are two pages; what changes one by POST is asked for anew.
		s.Now(stage.Plain(200, "hello", "Cache-Control", "max-age=600"))
		s.Get(blog + "/page")
		s.Get(blog + "/other")
		s.Expect(2, "two pages")
		s.Now(stage.Plain(201, "changed", "Location", "/other"))
		s.Send(stage.Request("POST", blog+"/page"))
		s.Now(stage.Plain(200, "new", "Cache-Control", "max-age=600"))
		s.Calls()
		stage.WantBody(t, "the page after a POST", s.Get(blog+"/page"), 200, "new")
		stage.WantBody(t, "what the POST names in Location", s.Get(blog+"/other"), 200, "new")
	})
}

// What goes through is as it would be without the shield: methods, bodies, fields,
// addresses, statuses.
func TestSharedPassesThrough(t *testing.T) {
	echoBody := func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		w.Header().Set("X-Seen", fmt.Sprint(r.Method, r.URL, r.RequestURI, r.Host, r.RemoteAddr, poller.Client(r), r.Header, r.ContentLength))
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(202)
		_, err = w.Write(body)
		return err
	}
	stage.Run(t, plainCache+"http://bare.test {\nbind void/site\nbackend\n}\n", echoBody, func(s *stage.Stage) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"} {
			body := ""
			if method != "GET" && method != "OPTIONS" {
				body = strings.Repeat("x", 100_000)
			}
			ask := func(host string) *httptest.ResponseRecorder {
				r := stage.Request(method, blog+"/page?a=b", "Cookie", "c=d", "Authorization", "Basic eA==", "If-Match", `"1"`, "Accept-Language", "de", "X-Forwarded-For", "198.51.100.9")
				r.Host = host
				if body != "" {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				}
				return s.Send(r)
			}
			want, got := ask("bare.test"), ask("blog.test")
			seen := strings.Replace(want.Header().Get("X-Seen"), "bare.test", "blog.test", 1)
			if got.Code != want.Code || got.Body.String() != want.Body.String() || got.Header().Get("X-Seen") != seen || fmt.Sprint(got.Header()["Set-Cookie"]) != fmt.Sprint(want.Header()["Set-Cookie"]) {
				t.Errorf("%s: %d %d bytes\n%s\nwithout the shield %d %d bytes\n%s", method, got.Code, got.Body.Len(), got.Header(), want.Code, want.Body.Len(), seen)
			}
		}
	})
}

// Errors of handlers reach Caddy's handle_errors as they are.
func TestSharedErrors(t *testing.T) {
	site := blog + " {\nbind void/site\n" + shieldOf("x", "rfc9111") + "handle_errors {\nrespond \"sorry: {err.status_code} {err.message}\" 418\n}\n}\n"
	fails := func(status int) stage.Answer {
		return func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(status, errors.New("why not")) }
	}
	stage.Run(t, site, fails(404), func(s *stage.Stage) {
		for _, status := range []int{404, 403, 502} {
			s.Now(fails(status))
			stage.WantBody(t, "an error", s.Get(blog+"/page"), 418, fmt.Sprintf("sorry: %d why not", status))
		}
		s.Now(func(http.ResponseWriter, *http.Request) error { return errors.New("no status") })
		stage.WantBody(t, "an error without a status", s.Get(blog+"/page"), 418, "sorry: ")
		// What is stale stands in for an origin that fails, not for one that says no.
		s.Now(stage.Plain(200, "stale", "Cache-Control", "max-age=60"))
		s.Get(blog + "/page")
		time.Sleep(2 * time.Minute)
		s.Now(fails(502))
		stage.WantBody(t, "a failure", s.Get(blog+"/page"), 200, "stale")
		s.Now(fails(404))
		stage.WantBody(t, "a refusal", s.Get(blog+"/page"), 418, "sorry: 404")
	})
}

// Bodies stream, also large ones; an origin that breaks off is seen to; what its
// reader leaves ends.
func TestSharedStreams(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("Cache-Control", "no-store")
		for i := range 60 {
			if _, err := fmt.Fprintln(w, i); err != nil {
				return err
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return r.Context().Err()
			}
		}
		return nil
	}
	stage.Run(t, plainCache, drip, func(s *stage.Stage) {
		r := stage.Request("GET", blog+"/events")
		ctx, leave := context.WithTimeout(r.Context(), 4500*time.Millisecond)
		began := time.Now()
		stage.WantBody(t, "a reader who leaves", s.Send(r.WithContext(ctx)), 200, "0\n1\n2\n3\n4\n")
		leave()
		if took := time.Since(began); took != 4500*time.Millisecond {
			t.Errorf("the reader left after %v", took)
		}

		large := strings.Repeat("0123456789", 3<<20)
		s.Now(stage.Plain(200, large, "Cache-Control", "max-age=60"))
		for range 2 {
			if w := s.Get(blog + "/large"); w.Body.String() != large {
				t.Errorf("%d of %d bytes", w.Body.Len(), len(large))
			}
		}

		for name, end := range map[string]stage.Answer{
			"abort":  func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) },
			"error":  func(http.ResponseWriter, *http.Request) error { return errors.New("oh") },
			"length": func(http.ResponseWriter, *http.Request) error { return nil },
		} {
			s.Now(func(w http.ResponseWriter, r *http.Request) error {
				w.Header().Set("Cache-Control", "max-age=60")
				w.Header().Set("Content-Length", "1000")
				_, _ = io.WriteString(w, "half of it")
				return end(w, r)
			})
			for range 2 {
				func() {
					defer func() {
						if recover() != http.ErrAbortHandler {
							t.Errorf("%s: the reader was not told", name)
						}
					}()
					s.Get(blog + "/broken")
				}()
			}
		}
		synctest.Wait()
	})
}

// What takes over the connection goes past the cache.
func TestSharedUpgrade(t *testing.T) {
	var writer http.ResponseWriter
	stage.Run(t, plainCache, func(w http.ResponseWriter, _ *http.Request) error { writer = w; return nil }, func(s *stage.Stage) {
		for _, r := range []*http.Request{
			stage.Request("GET", blog+"/socket", "Connection", "Upgrade", "Upgrade", "websocket"), stage.Request("CONNECT", blog+"/socket"),
		} {
			s.Send(r)
			if _, made := writer.(*responder); made {
				t.Errorf("%s does not get its connection", r.Method)
			}
		}
	})
}

// HEAD reaches the handler itself, and leaves nothing behind. What the handler
// writes is for the server to drop, as without the shield.
func TestSharedHead(t *testing.T) {
	stage.Run(t, plainCache, stage.Plain(200, strings.Repeat("x", 100_000), "X-Own", "kept"), func(s *stage.Stage) {
		w := s.Send(stage.Request("HEAD", blog+"/page"))
		if w.Code != 200 || w.Header().Get("X-Own") != "kept" {
			t.Errorf("%d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
		}
	})
}
