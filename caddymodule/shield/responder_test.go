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
)

// respond returns the response of a handler.
func respond(handle func(http.ResponseWriter, *http.Request) error) (*http.Response, error) {
	r := httptest.NewRequest("GET", "http://blog.test/", nil)
	return roundTrip(r, func(ctx context.Context, _ http.ResponseWriter) *http.Request {
		return r.WithContext(ctx)
	}, handle)
}

// A response is the same as that of a server with this handler.
func TestResponderLikeServer(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter, r *http.Request) error{
		"nothing": func(http.ResponseWriter, *http.Request) error { return nil },
		"status":  func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(404); return nil },
		"body":    func(w http.ResponseWriter, _ *http.Request) error { _, err := io.WriteString(w, "hello"); return err },
		"two statuses": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(202)
			w.WriteHeader(500)
			return nil
		},
		"late header": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("X-Early", "1")
			w.WriteHeader(200)
			w.Header().Set("X-Late", "1")
			return nil
		},
		"length": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Length", "5")
			_, err := io.WriteString(w, "hello")
			return err
		},
		"interim responses": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(103)
			w.WriteHeader(200)
			return nil
		},
		"announced trailers": func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Trailer", "X-Sum, grpc-status")
			_, _ = io.WriteString(w, "hello")
			w.Header().Set("X-Sum", "42")
			w.Header().Set("Grpc-Status", "0")
			return nil
		},
		"trailers by prefix": func(w http.ResponseWriter, _ *http.Request) error {
			_, _ = io.WriteString(w, "hello")
			w.(http.Flusher).Flush()
			w.Header().Set(http.TrailerPrefix+"X-Sum", "42")
			return nil
		},
		"no body allowed": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(304)
			_, _ = io.WriteString(w, "hello")
			return nil
		},
		"large": func(w http.ResponseWriter, _ *http.Request) error {
			_, err := io.WriteString(w, strings.Repeat("x", 1<<20))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _ = handle(w, r) }))
			defer server.Close()
			want, err := http.Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			got, err := respond(handle)
			if err != nil {
				t.Fatal(err)
			}
			describe := func(r *http.Response) string {
				body, err := io.ReadAll(r.Body)
				r.Body.Close()
				for _, own := range []string{"Date", "Content-Type"} { // a server adds them
					r.Header.Del(own)
				}
				if name != "length" {
					r.Header.Del("Content-Length")
				}
				if strings.HasSuffix(name, "trailers") { // they are dropped
					r.Header.Del("X-Sum")
				}
				return fmt.Sprint(r.StatusCode, r.Header, len(body), err)
			}
			if g, w := describe(got), describe(want); g != w {
				t.Errorf("got %s\nwant %s", g, w)
			}
		})
	}
	// Matchers and placeholders may panic while the request is made.
	r := httptest.NewRequest("GET", "http://blog.test/", nil)
	_, err := roundTrip(r, func(context.Context, http.ResponseWriter) *http.Request { panic("oh") }, nil)
	if _, panicked := errors.AsType[*panicError](err); !panicked {
		t.Errorf("got %v", err)
	}
}
