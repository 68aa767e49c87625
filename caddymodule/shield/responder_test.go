// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bufio"
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
)

// respond returns the response of a handler.
func respond(t *testing.T, ctx context.Context, handle func(http.ResponseWriter, *http.Request) error) (*http.Response, error) {
	t.Helper()
	r := httptest.NewRequestWithContext(ctx, "GET", "http://blog.test/", nil)
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
			got, err := respond(t, t.Context(), handle)
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
}

// A handler that fails or panics fails its request only.
func TestResponderFails(t *testing.T) {
	oh := errors.New("oh")
	begin := func(w http.ResponseWriter) { _, _ = io.WriteString(w, "half"); w.(http.Flusher).Flush() }
	for _, tt := range []struct {
		name   string
		handle func(w http.ResponseWriter, r *http.Request) error
		early  error // of the round trip
		late   error // of the body
	}{
		{"error", func(http.ResponseWriter, *http.Request) error { return oh }, oh, nil},
		{"error in the body", func(w http.ResponseWriter, _ *http.Request) error { begin(w); return oh }, nil, oh},
		{"abort", func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, io.ErrUnexpectedEOF, nil},
		{"abort in the body", func(w http.ResponseWriter, _ *http.Request) error { begin(w); panic(http.ErrAbortHandler) }, nil, io.ErrUnexpectedEOF},
		{"panic", func(http.ResponseWriter, *http.Request) error { panic("oh") }, new(panicError), nil},
		{"panic in the body", func(w http.ResponseWriter, _ *http.Request) error { begin(w); panic(oh) }, nil, new(panicError)},
		{"too short", func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Length", "5")
			begin(w)
			return nil
		}, nil, io.ErrUnexpectedEOF},
		{"too long", func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Content-Length", "3")
			_, err := io.WriteString(w, "four")
			return err
		}, nil, http.ErrContentLength},
	} {
		t.Run(tt.name, func(t *testing.T) {
			is := func(err, want error) bool {
				if _, panicked := want.(*panicError); panicked {
					_, ok := errors.AsType[*panicError](err)
					return ok
				}
				return errors.Is(err, want)
			}
			resp, err := respond(t, t.Context(), tt.handle)
			if !is(err, tt.early) {
				t.Fatalf("got %v, want %v", err, tt.early)
			}
			if err != nil {
				return
			}
			if _, err := io.ReadAll(resp.Body); !is(err, tt.late) {
				t.Errorf("the body ended with %v, want %v", err, tt.late)
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

// Each part arrives when the handler has written it. The handler ends when the body is closed or the
// client leaves.
func TestResponderStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		drip := func(w http.ResponseWriter, r *http.Request) error {
			for i := 0; ; i++ {
				if _, err := fmt.Fprintln(w, i); err != nil {
					ended <- err
					return err
				}
				time.Sleep(time.Second)
			}
		}
		began := time.Now()
		resp, err := respond(t, t.Context(), drip)
		if err != nil {
			t.Fatal(err)
		}
		body := bufio.NewReader(resp.Body)
		for i := range 3 {
			if line, err := body.ReadString('\n'); err != nil || line != fmt.Sprintln(i) || time.Since(began) != time.Duration(i)*time.Second {
				t.Errorf("after %v: %q, %v", time.Since(began), line, err)
			}
		}
		resp.Body.Close()
		if err := <-ended; err == nil {
			t.Error("the handler was not told")
		}

		ctx, leave := context.WithCancel(t.Context())
		resp, err = respond(t, ctx, drip)
		if err != nil {
			t.Fatal(err)
		}
		leave()
		if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
			t.Errorf("the body ended with %v", err)
		}
		<-ended

		// roundTrip does not wait for a handler longer than the context.
		ctx, leave = context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, err := respond(t, ctx, func(http.ResponseWriter, *http.Request) error { time.Sleep(time.Hour); return nil }); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		time.Sleep(2 * time.Hour)
	})
}
