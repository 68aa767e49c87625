// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const home = "http://example.com"

// bench is a cache in a bubble, with an origin that answers as it is told.
type bench struct {
	t     testing.TB
	cache *Cache

	mu     sync.Mutex
	answer func(*http.Request) (*http.Response, error)
	asked  []*http.Request
}

// bubble runs a test with a cache of its own, on a clock of its own.
func bubble(t *testing.T, o Options, test func(*testing.T, *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		test(t, &bench{t: t, cache: c})
	})
}

// RoundTrip is the origin.
func (b *bench) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	b.asked = append(b.asked, r)
	answer := b.answer
	b.mu.Unlock()
	if answer == nil {
		b.t.Errorf("origin: unexpected %s %s", r.Method, r.URL)
		return says(500, "")(r)
	}
	return answer(r)
}

// origin tells what the origin says from now on.
func (b *bench) origin(answer func(*http.Request) (*http.Response, error)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answer = answer
}

// requests is what the origin was asked since the last call.
func (b *bench) requests() []*http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { b.asked = nil }()
	return b.asked
}

// says makes an answer of a status, a body and "Name: value" lines.
func says(status int, body string, lines ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		header := headerOf(lines...)
		if _, ok := header["Date"]; !ok {
			header.Set("Date", httpTime(0))
		}
		length := int64(len(body))
		if r.Method == http.MethodHead {
			body = ""
		}
		return &http.Response{StatusCode: status, Header: header, ContentLength: length, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// fails makes an origin that can not be reached.
func fails(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// httpTime is an HTTP-date, counted from now.
func httpTime(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }

// headerOf makes a header of "Name: value" lines; "Name" alone with @ is a date:
// "Expires: @1h" is in an hour.
func headerOf(lines ...string) http.Header {
	header := make(http.Header)
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if offset, ok := strings.CutPrefix(value, "@"); ok {
			d, err := time.ParseDuration(offset)
			if err != nil {
				panic(err)
			}
			value = httpTime(d)
		}
		header.Add(name, value)
	}
	return header
}

// request makes a reader's request.
func request(method, target string, lines ...string) *http.Request {
	r := httptest.NewRequest(method, home+target, nil)
	r.Header = headerOf(lines...)
	return r
}

// serve sends a request through the cache.
func (b *bench) serve(r *http.Request) *http.Response {
	b.t.Helper()
	w := httptest.NewRecorder()
	if err := b.cache.ServeHTTP(w, r, home+r.URL.RequestURI(), b); err != nil {
		b.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	return w.Result()
}

// try is serve where an error is expected.
func (b *bench) try(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	err := b.cache.ServeHTTP(w, r, home+r.URL.RequestURI(), b)
	return w.Result(), err
}

// step is one request of a scene, and what is expected of it.
type step struct {
	after  time.Duration // since the step before
	method string        // default: GET
	path   string        // default: /
	send   []string      // the reader's fields
	origin func(*http.Request) (*http.Response, error)

	asked  bool     // the origin is asked
	sees   []string // fields that it sees; "-Name": one that it does not
	status int      // default: 200
	body   string   // "*": whatever it is
	has    []string // fields of the answer; "-Name": one that is not there
}

// run plays a scene.
func (b *bench) run(steps []step) {
	b.t.Helper()
	for i, s := range steps {
		time.Sleep(s.after)
		b.origin(s.origin)
		if s.method == "" {
			s.method = http.MethodGet
		}
		if s.path == "" {
			s.path = "/"
		}
		if s.status == 0 {
			s.status = http.StatusOK
		}
		answer := b.serve(request(s.method, s.path, s.send...))
		synctest.Wait() // fetches in the background
		body, _ := io.ReadAll(answer.Body)
		asked := b.requests()
		if answer.StatusCode != s.status {
			b.t.Errorf("step %d: status %d, want %d", i+1, answer.StatusCode, s.status)
		}
		if s.body != "*" && string(body) != s.body {
			b.t.Errorf("step %d: body %q, want %q", i+1, body, s.body)
		}
		b.fields(i, "answer", answer.Header, s.has)
		if s.asked != (len(asked) > 0) || len(asked) > 1 {
			b.t.Errorf("step %d: the origin was asked %d times, want %t; %s", i+1, len(asked), s.asked, answer.Header["Cache-Status"])
		} else if s.asked {
			b.fields(i, "request", asked[0].Header, s.sees)
		}
	}
}

func (b *bench) fields(i int, of string, header http.Header, want []string) {
	b.t.Helper()
	for _, line := range want {
		if name, ok := strings.CutPrefix(line, "-"); ok {
			if got, ok := header[http.CanonicalHeaderKey(name)]; ok && got != nil {
				b.t.Errorf("step %d: %s has %s: %q", i+1, of, name, got)
			}
			continue
		}
		for name, values := range headerOf(line) {
			if got := header[name]; !slices.Equal(got, values) {
				b.t.Errorf("step %d: %s has %s: %q, want %q", i+1, of, name, got, values)
			}
		}
	}
}

// scenes plays every scene with a new cache.
func scenes(t *testing.T, o Options, all map[string][]step) {
	t.Helper()
	for name, steps := range all {
		t.Run(name, func(t *testing.T) {
			bubble(t, o, func(t *testing.T, b *bench) { b.run(steps) })
		})
	}
}

// within is a request whose reader can leave.
func within(ctx context.Context, r *http.Request) *http.Request { return r.WithContext(ctx) }

// text is the body of an answer.
func text(answer *http.Response) string {
	body, _ := io.ReadAll(answer.Body)
	return string(body)
}
