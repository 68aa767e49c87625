// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
)

// Reader is a client that remembers the last 200 of each URL and asks conditionally
// from then on. It does not follow redirects. Requests of one Reader may be made in
// parallel.
type Reader struct {
	Transport http.RoundTripper // nil: [http.DefaultTransport]
	Header    http.Header       // of each request, in addition

	mu   sync.Mutex // guards last
	last map[string]Response
}

// Response is what a reader got.
type Response struct {
	Status int
	Header http.Header
	Body   string // of a 304: empty
}

// Get requests a URL, with the validators of the last 200 that it has for it.
func (r *Reader) Get(address string) (Response, error) {
	request, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return Response{}, err
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	last, _ := r.Last(address)
	if tag := last.Header.Get("ETag"); tag != "" {
		request.Header.Set("If-None-Match", tag)
	}
	if date := last.Header.Get("Last-Modified"); date != "" {
		request.Header.Set("If-Modified-Since", date)
	}
	transport := r.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return Response{}, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return Response{}, fmt.Errorf("reading the body: %w", err)
	}
	got := Response{response.StatusCode, response.Header, string(body)}
	if got.Status == http.StatusOK {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.last == nil {
			r.last = make(map[string]Response)
		}
		r.last[address] = got
	}
	return got, nil
}

// Last returns the last 200 of a URL, which the reader shows.
func (r *Reader) Last(address string) (Response, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, ok := r.last[address]
	return last, ok
}

// Transport makes requests of a handler, without a network.
func Transport(h http.Handler) http.RoundTripper { return transport{h} }

type transport struct{ handler http.Handler }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	server := r.Clone(r.Context())
	server.Host, server.RequestURI, server.RemoteAddr = r.URL.Host, r.URL.RequestURI(), "192.0.2.1:1234"
	server.URL = &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}
	if server.Body == nil {
		server.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	t.handler.ServeHTTP(w, server)
	return w.Result(), nil
}
