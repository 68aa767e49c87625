// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"context"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
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
func bubble(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	bubbleOf(t, 64<<20, test)
}

// bubbleOf is a bubble with a cache of a memory budget in bytes.
func bubbleOf(t *testing.T, memory int64, test func(*testing.T, *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(memory)
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

// ownKey marks a reader's own request.
type ownKey struct{}

// own is the origin's own handler: what a reverse proxy does.
func (b *bench) own(w http.ResponseWriter, r *http.Request) error {
	out := r.Clone(context.WithValue(r.Context(), ownKey{}, true))
	out.RequestURI = ""
	answer, err := b.RoundTrip(out)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.StatusCode)
	buffer := make([]byte, 1000)
	for {
		n, err := answer.Body.Read(buffer)
		if _, failed := w.Write(buffer[:n]); failed != nil {
			return nil
		}
		_ = http.NewResponseController(w).Flush()
		if err == io.EOF {
			break
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
	for name, values := range answer.Trailer {
		w.Header()[http.TrailerPrefix+name] = values
	}
	return nil
}

// target is what a request for home asks for.
func (b *bench) target(r *http.Request) Target {
	u, err := url.Parse(home + r.URL.RequestURI())
	if err != nil {
		b.t.Fatal(err)
	}
	key := func(u *url.URL) string { return "site " + u.String() }
	return Target{
		Key: key(u), URL: u, KeyOf: key,
		Request: func() *http.Request { return Anonymous(r, u) }, Shared: b, Own: b.own,
	}
}

// send sends a request through the cache.
func (b *bench) send(w http.ResponseWriter, r *http.Request) error {
	return b.cache.Serve(w, r, b.target(r))
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
	if err := b.send(w, r); err != nil {
		b.t.Errorf("%s %s: %v", r.Method, r.URL, err)
	}
	return w.Result()
}

// try is serve where an error is expected.
func (b *bench) try(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	err := b.send(w, r)
	return w.Result(), err
}

// step is one request of a scene, and what is expected of it.
type step struct {
	after  time.Duration // since the step before
	method string        // default: GET
	path   string        // default: /
	send   []string      // the reader's fields
	origin func(*http.Request) (*http.Response, error)

	asked  bool     // the origin is asked, in either way
	shared bool     // it is asked by a shared fetch
	own    bool     // it is asked by the reader's own request
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
		want := s.asked || s.shared || s.own
		if want != (len(asked) > 0) || len(asked) > 1 {
			b.t.Errorf("step %d: the origin was asked %d times, want %t; %s", i+1, len(asked), want, answer.Header["Cache-Status"])
		} else if want {
			if own := asked[0].Context().Value(ownKey{}) != nil; own != s.own && !s.asked {
				b.t.Errorf("step %d: the reader's own request went to the origin: %t; %s", i+1, own, answer.Header["Cache-Status"])
			}
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
func scenes(t *testing.T, all map[string][]step) {
	t.Helper()
	for name, steps := range all {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, b *bench) { b.run(steps) })
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
