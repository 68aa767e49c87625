// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package origintest is for tests: a scripted origin, a WebSub hub, a proxy and sample feeds.
//
// An [Origin] answers requests by a function and records them. It is an
// [http.Handler] for servers and an [http.RoundTripper] for clients, so that a test
// needs no network. Neither blocks on anything but time, so both work in a
// [testing/synctest] bubble. [Feed] and [Document] write feeds.
//
// It is not for tests of malformed HTTP: its responses are always well-formed.
package origintest

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Request is a request that an origin received.
type Request struct {
	Time   time.Time
	Method string
	URL    string // absolute
	Header http.Header
}

// Origin answers requests and records them. The zero Origin answers each request with
// Feed(3, "").
type Origin struct {
	// Answer returns the response to a request. Requests in parallel call it in parallel.
	Answer func(r *http.Request) Answer

	mu       sync.Mutex // guards requests
	requests []Request
}

// New returns an origin that gives these answers in order, and then the last one again
// and again.
func New(answers ...Answer) *Origin {
	var asked atomic.Int64
	return &Origin{Answer: func(*http.Request) Answer {
		return answers[min(int(asked.Add(1)), len(answers))-1]
	}}
}

// Start serves the origin at an address of this machine, until the end of the test.
func (o *Origin) Start(t testing.TB) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	return server
}

// Requests returns the requests so far.
func (o *Origin) Requests() []Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.requests)
}

// For returns the requests so far for one URL.
func (o *Origin) For(url string) []Request {
	return slices.DeleteFunc(o.Requests(), func(r Request) bool { return r.URL != url })
}

// respond records a request and returns its answer after the answer's delay.
func (o *Origin) respond(r *http.Request) Answer {
	url := *r.URL
	if url.Host == "" { // of a server's request
		url.Scheme, url.Host = "http", r.Host
		if r.TLS != nil {
			url.Scheme = "https"
		}
	}
	o.mu.Lock()
	o.requests = append(o.requests, Request{time.Now(), r.Method, url.String(), r.Header.Clone()})
	o.mu.Unlock()
	answer := OK(Feed(3, ""))
	if o.Answer != nil {
		answer = o.Answer(r)
	}
	if answer.NotModified(r) {
		answer.Status, answer.Body = http.StatusNotModified, ""
	}
	select {
	case <-time.After(answer.Delay):
	case <-r.Context().Done():
		answer.Err = cmp.Or(answer.Err, r.Context().Err())
	}
	return answer
}

func (o *Origin) ServeHTTP(w http.ResponseWriter, r *http.Request) { o.respond(r).write(w, r) }

// RoundTrip implements [http.RoundTripper].
func (o *Origin) RoundTrip(r *http.Request) (*http.Response, error) { return o.respond(r).response(r) }
