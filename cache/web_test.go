// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// web is a world of origins for the real [upstream.Client]: it answers requests by a
// function of their URL, and keeps a log.
type web struct {
	answer func(url string) response

	mu       sync.Mutex // guards requests, and is held while an answer is made
	requests map[string][]time.Time
}

// response is an answer with header fields in pairs.
type response struct {
	status int
	body   string
	header []string
}

func given(body string, header ...string) response {
	return response{http.StatusOK, body, append([]string{"Content-Type", "application/rss+xml"}, header...)}
}

func redirect(status int, to string, header ...string) response {
	return response{status, "", append([]string{"Location", to}, header...)}
}

func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	url := r.URL.String()
	w.mu.Lock()
	if w.requests == nil {
		w.requests = make(map[string][]time.Time)
	}
	w.requests[url] = append(w.requests[url], time.Now())
	a := w.answer(url)
	w.mu.Unlock()
	resp := &http.Response{
		StatusCode: a.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: int64(len(a.body)), Request: r,
	}
	for i := 0; i < len(a.header); i += 2 {
		resp.Header.Set(a.header[i], a.header[i+1])
	}
	return resp, nil
}

// requested is when a URL was asked, by its own polls or by redirects to it.
func (w *web) requested(url string) []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Time(nil), w.requests[url]...)
}

// logged is a client whose polls are written down.
type logged struct {
	*upstream.Client
	log *script
}

func (o logged) Acquire(ctx context.Context, url feedurl.URL) (policy.Slot, error) {
	slot, err := o.Client.Acquire(ctx, url)
	if err != nil {
		return nil, err
	}
	return loggedSlot{slot, o.log}, nil
}

type loggedSlot struct {
	policy.Slot
	log *script
}

func (s loggedSlot) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	s.log.mu.Lock()
	s.log.asks, s.log.at = append(s.log.asks, ask), append(s.log.at, time.Now())
	s.log.mu.Unlock()
	return s.Slot.Poll(ctx, ask)
}
