// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
)

// gateway is the host under which the readers of a simulation know it.
const gateway = "feeds.test"

// feed is a feed as readers know it.
type feed struct {
	*resource
	path   string
	mu     sync.Mutex // guards what follows
	served bool
	newest int // version that a reader has got
	etag   string
	date   string
}

// reader is a feed reader with bad habits.
type reader struct {
	sim    *simulation
	name   string
	rng    *rand.Rand
	client *http.Client
	pause  time.Duration // between its rounds, about
	ask    func(*reader, *feed) *http.Request
	storm  int           // parallel requests; 0: one
	leaves time.Duration // how long it waits for an answer
}

// habits are the readers' habits: how each asks for a feed.
var habits = []struct {
	name   string
	pause  time.Duration
	storm  int
	leaves time.Duration
	ask    func(*reader, *feed) *http.Request
}{
	{name: "good", pause: 40 * time.Minute, ask: func(r *reader, s *feed) *http.Request { return r.conditional(s) }},
	{name: "no-cache", pause: 20 * time.Minute, ask: with("Cache-Control", "no-cache, max-age=0")},
	{name: "pragma", pause: 50 * time.Minute, ask: with("Pragma", "no-cache", "Cache-Control", "no-store, must-revalidate")},
	{name: "head", pause: time.Hour, ask: func(r *reader, s *feed) *http.Request { return r.request(http.MethodHead, s) }},
	{name: "cruft", pause: time.Hour, ask: func(r *reader, s *feed) *http.Request {
		q := r.request(http.MethodGet, s)
		if q.URL.Path == s.path { // a query is part of a feed's URL otherwise
			q.URL.RawQuery = fmt.Sprintf("utm_source=reader&_=%d", r.rng.Int())
		}
		return q
	}},
	{name: "chatty", pause: time.Hour, ask: with("Cookie", "session=secret", "Referer", "https://reader.test/", "Authorization", "Basic c2VjcmV0",
		"X-Forwarded-For", "192.0.2.7", "Forwarded", "for=192.0.2.7", "Accept-Language", "de", "Dnt", "1", "Sec-Fetch-Mode", "cors", "Via", "1.1 home")},
	{name: "now", pause: time.Hour, ask: func(r *reader, s *feed) *http.Request {
		q := r.request(http.MethodGet, s)
		q.Header.Set("If-Modified-Since", r.sim.clock.truth().UTC().Format(http.TimeFormat))
		return q
	}},
	{name: "past", pause: time.Hour, ask: with("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")},
	{name: "garbage", pause: time.Hour, ask: with("If-Modified-Since", "yesterday", "If-None-Match", `W/"", "x, ,,"`)},
	{name: "foreign", pause: time.Hour, ask: with("If-None-Match", `"someone-elses", W/"another"`, "If-Modified-Since", "Tue, 01 Jan 2080 00:00:00 GMT")},
	{name: "range", pause: time.Hour, ask: with("Range", "bytes=0-99", "If-Range", `"x"`)},
	{name: "codings", pause: time.Hour, ask: func(r *reader, s *feed) *http.Request {
		odd := []string{"identity;q=0", "*;q=0", "GZIP", ";;q=,", "br;q=1.0, gzip;q=0.5, *;q=0.1", "zstd", "x-gzip", "deflate", ""}
		return with("Accept-Encoding", odd[r.rng.IntN(len(odd))])(r, s)
	}},
	{name: "post", pause: 6 * time.Hour, ask: func(r *reader, s *feed) *http.Request { return r.request(http.MethodPost, s) }},
	{name: "storm", pause: 3 * time.Hour, storm: 30, ask: func(r *reader, s *feed) *http.Request { return r.request(http.MethodGet, s) }},
	{name: "second storm", pause: 4 * time.Hour, storm: 10, ask: with("Cache-Control", "no-cache")},
	{name: "impatient", pause: 30 * time.Minute, leaves: time.Second, ask: func(r *reader, s *feed) *http.Request { return r.request(http.MethodGet, s) }},
	{name: "any", pause: time.Hour, ask: with("If-None-Match", "*")},
	{name: "delta", pause: time.Hour, ask: with("A-IM", "feed, gzip", "Te", "trailers")},
	{name: "hasty", pause: 8 * time.Minute, ask: func(r *reader, s *feed) *http.Request { return r.conditional(s) }},
	{name: "closing", pause: time.Hour, ask: with("Connection", "close")},
}

// with asks with some header fields.
func with(header ...string) func(*reader, *feed) *http.Request {
	return func(r *reader, s *feed) *http.Request {
		q := r.request(http.MethodGet, s)
		for i := 0; i < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		return q
	}
}

// newReader returns reader i, which has an address of its own.
func newReader(sim *simulation, i int) *reader {
	kind := habits[i%len(habits)]
	from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 168, 1, byte(i + 10)}), 40000)
	return &reader{
		sim: sim, name: kind.name, rng: rand.New(rand.NewPCG(sim.seed, uint64(i))),
		pause: kind.pause, storm: kind.storm, leaves: kind.leaves, ask: kind.ask,
		client: &http.Client{Transport: &http.Transport{
			DisableCompression: true,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return sim.net.DialFrom(ctx, network, address, from)
			},
		}},
	}
}

// live asks for feeds until the context ends.
func (r *reader) live(ctx context.Context) {
	defer r.client.CloseIdleConnections()
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.pause + time.Duration(r.rng.Int64N(int64(r.pause)))):
		}
		s := r.sim.feeds[r.rng.IntN(len(r.sim.feeds))]
		var crowd sync.WaitGroup
		for range max(1, r.storm) {
			q := r.ask(r, s)
			crowd.Go(func() { r.send(ctx, q, s) })
		}
		crowd.Wait()
	}
}

// request is a request for a feed by path or by URL, in one of the forms.
func (r *reader) request(method string, s *feed) *http.Request {
	u := &url.URL{Scheme: "http", Host: gateway}
	rest := strings.TrimPrefix(s.url, "http://")
	switch r.rng.IntN(6) {
	case 0:
		u.Opaque = "//" + gateway + "/" + s.url
	case 1:
		u.Opaque = "//" + gateway + "/" + strings.Replace(s.url, "://", ":/", 1)
	case 2:
		u.Path, u.RawQuery = "/", "url="+url.QueryEscape(s.url)
	case 3:
		if host, path, ok := strings.Cut(rest, "/"); ok && strings.HasPrefix(s.url, "http://") {
			u.Opaque = "//" + gateway + "/HTTP://" + strings.ToUpper(host) + ":80/" + path
			break
		}
		fallthrough
	default:
		u.Path = s.path
	}
	q := (&http.Request{Method: method, URL: u, Host: gateway, Header: http.Header{}, Body: http.NoBody}).WithContext(context.Background())
	q.Header.Set("User-Agent", r.name+"/1.0")
	if coding := []string{"", "gzip", "gzip, deflate, br", "zstd, br, gzip"}[r.rng.IntN(4)]; coding != "" {
		q.Header.Set("Accept-Encoding", coding)
	}
	return q
}

// conditional is a request with the validators of the reader's copy.
func (r *reader) conditional(s *feed) *http.Request {
	q := r.request(http.MethodGet, s)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.etag != "" {
		q.Header.Set("If-None-Match", s.etag)
	}
	if s.date != "" {
		q.Header.Set("If-Modified-Since", s.date)
	}
	return q
}

// send makes a request and checks its answer. A gateway that is being stopped may break
// connections.
func (r *reader) send(ctx context.Context, q *http.Request, s *feed) {
	if r.leaves > 0 {
		limited, cancel := context.WithTimeout(ctx, r.leaves)
		defer cancel()
		q = q.WithContext(limited)
	}
	for try := range 3 {
		seen, began, life := s.snapshot(), time.Now(), r.sim.life.Load()
		resp, err := r.client.Do(q)
		var body []byte
		if err == nil {
			body, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		disturbed := r.sim.ending.Load() || r.sim.life.Load() != life
		switch {
		case disturbed, errors.Is(err, context.DeadlineExceeded):
			return
		case err == nil:
			r.sim.checkAnswer(q, s, seen, resp, body, time.Since(began))
			return
		case try == 2:
			r.sim.violation("%s %s: %v", r.name, q.URL, err)
		}
		time.Sleep(time.Second) // a reload replaced the server, which closed the connection
	}
}

// seen is what readers had of a feed when a request began.
type seen struct {
	served bool
	newest int
}

func (s *feed) snapshot() seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return seen{s.served, s.newest}
}

// plainBody undoes an answer's content coding.
func plainBody(resp *http.Response, body []byte) ([]byte, error) {
	return decodeBody(resp.Header.Get("Content-Encoding"), bytes.NewReader(body))
}
