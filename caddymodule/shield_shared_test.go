// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

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
)

var plainCache = shieldedSite(blog, "{\n\t\trfc9111\n\t}")

// In rfc9111 mode HTTP freshness alone decides, for anything.
func TestSharedStores(t *testing.T) {
	onStage(t, plainCache, plain(200, "hello", "Content-Type", "text/plain", "Cache-Control", "max-age=600", "ETag", `"1"`, "X-Own", "kept"), func(s *stage) {
		for range 3 {
			w := s.get(blog+"/page?a=b", "X-Asked", "yes")
			wantBody(t, "a page", w, 200, "hello")
			if w.Header().Get("X-Own") != "kept" || !strings.Contains(w.Header().Get("Cache-Status"), "Pollard") {
				t.Errorf("its header: %v", w.Header())
			}
		}
		first := s.expect(1, "three readers")[0]
		if first.Header.Get("X-Asked") != "yes" || first.RemoteAddr != abroad+":1234" || clientOf(first.Request).String() != abroad || first.Host != "blog.test" {
			t.Errorf("the origin saw %v from %s (%s) for %s", first.Header, first.RemoteAddr, clientOf(first.Request), first.Host)
		}
		s.get("http://evil.test/page?a=b")
		s.get(blog+"/page?a=b", "Host", "blog.test:9999")
		s.expect(0, "another port in Host")
		time.Sleep(11 * time.Minute)
		s.get(blog + "/page?a=b")
		if again := s.expect(1, "a stale page")[0]; again.Header.Get("If-None-Match") != `"1"` {
			t.Errorf("it was not validated: %v", again.Header)
		}
		// Two names of a page are two pages; what changes one by POST is asked for anew.
		s.now(plain(200, "hello", "Cache-Control", "max-age=600"))
		s.get(blog + "/page")
		s.get(blog + "/other")
		s.expect(2, "two pages")
		s.now(plain(201, "changed", "Location", "/other"))
		s.send(request("POST", blog+"/page"))
		s.now(plain(200, "new", "Cache-Control", "max-age=600"))
		s.calls()
		wantBody(t, "the page after a POST", s.get(blog+"/page"), 200, "new")
		wantBody(t, "what the POST names in Location", s.get(blog+"/other"), 200, "new")
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
		w.Header().Set("X-Seen", fmt.Sprint(r.Method, r.URL, r.RequestURI, r.Host, r.RemoteAddr, clientOf(r), r.Header, r.ContentLength))
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		w.WriteHeader(202)
		_, err = w.Write(body)
		return err
	}
	onStage(t, plainCache+shieldedSite("http://bare.test", "/never"), echoBody, func(s *stage) {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"} {
			body := ""
			if method != "GET" && method != "OPTIONS" {
				body = strings.Repeat("x", 100_000)
			}
			ask := func(host string) *httptest.ResponseRecorder {
				r := request(method, blog+"/page?a=b", "Cookie", "c=d", "Authorization", "Basic eA==", "If-Match", `"1"`, "Accept-Language", "de", "X-Forwarded-For", "198.51.100.9")
				r.Host = host
				if body != "" {
					r.Body, r.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
				}
				return s.send(r)
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
	site := blog + " {\nbind void/site\nfeed_shield {\nrfc9111\n}\nbackend\nhandle_errors {\nrespond \"sorry: {err.status_code} {err.message}\" 418\n}\n}\n"
	fails := func(status int) answer {
		return func(http.ResponseWriter, *http.Request) error { return caddyhttp.Error(status, errors.New("why not")) }
	}
	onStage(t, site, fails(404), func(s *stage) {
		for _, status := range []int{404, 403, 502} {
			s.now(fails(status))
			wantBody(t, "an error", s.get(blog+"/page"), 418, fmt.Sprintf("sorry: %d why not", status))
		}
		s.now(func(http.ResponseWriter, *http.Request) error { return errors.New("no status") })
		wantBody(t, "an error without a status", s.get(blog+"/page"), 418, "sorry: ")
		// What is stale stands in for an origin that fails, not for one that says no.
		s.now(plain(200, "stale", "Cache-Control", "max-age=60"))
		s.get(blog + "/page")
		time.Sleep(2 * time.Minute)
		s.now(fails(502))
		wantBody(t, "a failure", s.get(blog+"/page"), 200, "stale")
		s.now(fails(404))
		wantBody(t, "a refusal", s.get(blog+"/page"), 418, "sorry: 404")
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
	onStage(t, plainCache, drip, func(s *stage) {
		r := request("GET", blog+"/events")
		ctx, leave := context.WithTimeout(r.Context(), 4500*time.Millisecond)
		began := time.Now()
		wantBody(t, "a reader who leaves", s.send(r.WithContext(ctx)), 200, "0\n1\n2\n3\n4\n")
		leave()
		if took := time.Since(began); took != 4500*time.Millisecond {
			t.Errorf("the reader left after %v", took)
		}

		large := strings.Repeat("0123456789", 3<<20)
		s.now(plain(200, large, "Cache-Control", "max-age=60"))
		for range 2 {
			if w := s.get(blog + "/large"); w.Body.String() != large {
				t.Errorf("%d of %d bytes", w.Body.Len(), len(large))
			}
		}

		for name, end := range map[string]answer{
			"abort":  func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) },
			"error":  func(http.ResponseWriter, *http.Request) error { return errors.New("oh") },
			"length": func(http.ResponseWriter, *http.Request) error { return nil },
		} {
			s.now(func(w http.ResponseWriter, r *http.Request) error {
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
					s.get(blog + "/broken")
				}()
			}
		}
		synctest.Wait()
	})
}

// What takes over the connection goes past the cache.
func TestSharedUpgrade(t *testing.T) {
	var writer http.ResponseWriter
	onStage(t, plainCache, func(w http.ResponseWriter, _ *http.Request) error { writer = w; return nil }, func(s *stage) {
		for _, r := range []*http.Request{
			request("GET", blog+"/socket", "Connection", "Upgrade", "Upgrade", "websocket"), request("CONNECT", blog+"/socket"),
		} {
			s.send(r)
			if _, cached := writer.(*sink); cached {
				t.Errorf("%s does not get its connection", r.Method)
			}
		}
	})
}

// HEAD gives no body, whatever the handler writes, and leaves nothing behind.
func TestSharedHead(t *testing.T) {
	onStage(t, plainCache, plain(200, strings.Repeat("x", 100_000), "X-Own", "kept"), func(s *stage) {
		w := s.send(request("HEAD", blog+"/page"))
		if w.Code != 200 || w.Body.Len() > 0 || w.Header().Get("X-Own") != "kept" {
			t.Errorf("%d, %d bytes, %v", w.Code, w.Body.Len(), w.Header())
		}
	})
}

// Handlers before the shield count for what follows it here, too.
func TestSharedPlaceholders(t *testing.T) {
	site := blog + " {\nbind void/site\nmap {header.X-Who} {who} {\nme you\n}\nvars seven 7\nfeed_shield {\nrfc9111\n}\nbackend \"{who} {vars.seven} {header.X-Add}\"\nrequest_header +X-Add once\n}\n"
	onStage(t, site, plain(200, "hello"), func(s *stage) {
		s.get(blog+"/page", "X-Who", "me")
		if said := s.expect(1, "a reader")[0].said; said != "you 7 once" {
			t.Errorf("the handler behind says %q", said)
		}
	})
}
