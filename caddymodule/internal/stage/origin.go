// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

const Sample = `<?xml version="1.0"?><rss version="2.0"><channel><title>T</title><link>https://example.com/</link>` +
	`<item><title>One</title><link>https://example.com/1</link></item></channel></rss>`

// Origin is all of the web: each URL is a feed, or what its path says. It keeps a log.
type Origin struct {
	// Document is what it answers with; empty: the sample.
	Document string

	mu     sync.Mutex // guards the log
	urls   []string
	agents []string
}

func (o *Origin) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	o.urls = append(o.urls, r.URL.Scheme+"://"+r.URL.Host+r.URL.RequestURI())
	o.agents = append(o.agents, r.UserAgent())
	o.mu.Unlock()
	status, body := http.StatusOK, cmp.Or(o.Document, Sample)
	switch {
	case strings.HasPrefix(r.URL.Path, "/gone"):
		status = http.StatusGone
	case strings.HasPrefix(r.URL.Path, "/page"):
		body = "<!DOCTYPE html><html><body>Hello</body></html>"
	}
	h := http.Header{"Content-Type": {"application/rss+xml"}, "Etag": {`"one"`}}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func (o *Origin) Asked() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.urls)
}

func (o *Origin) Agent(i int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.agents[i]
}

const (
	Home   = "192.168.1.7"
	Abroad = "203.0.113.5"
)
