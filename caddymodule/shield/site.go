// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// site is what stands behind a shield, as the origin of its feeds.
type site struct {
	client *upstream.Client
	rules  policy.Rules
}

// newSite returns a site that is asked by the poller of the settings. Feeds of one
// site do not wait for each other: the site is ours, and what paces it are the
// feeds' own intervals. Nothing has to be closed: polls under way when a
// configuration goes are brought to their end by the cache.
func newSite(rules policy.Rules, poller upstream.Settings) *site {
	s := &site{rules: rules}
	s.client = upstream.New(upstream.WithTransport(s), upstream.WithoutPacing())
	s.client.Apply(upstream.Settings{UserAgent: poller.UserAgent, Version: poller.Version, Contact: poller.Contact})
	return s
}

// errand is one poll of a site to be made: down the route that a request has shown.
type errand struct {
	site   *site
	url    string                // to be asked for
	route  atomic.Pointer[route] // nil when it has been used: the next request shows one anew
	fields http.Header           // of requests, by which the site tells readers apart
}

// errand returns the poll that a request may cause.
func (s *Shield) errand(r *http.Request, next caddyhttp.Handler, fields http.Header) *errand {
	p := s.position.Load()
	e := &errand{site: s.site, fields: fields}
	e.url = string(appendTarget(s.appendHost(append([]byte(scheme(r)), "://"...), p, r), r.URL))
	route := routeOf(r, next, p)
	route.poll = true
	e.route.Store(route)
	return e
}

// Rules implements [cache.Site].
func (e *errand) Rules() policy.Rules { return e.site.rules }

// Ready implements [cache.Origin].
func (e *errand) Ready(string) (at time.Time, why string) {
	if e.route.Load() == nil {
		return time.Now().Add(noRoute), policy.HintPause
	}
	return time.Time{}, ""
}

// noRoute is how long a feed rests whose next poll no request has shown a route for.
const noRoute = 10 * time.Second

// Hold implements [cache.Origin].
func (e *errand) Hold(string, time.Time, string) {}

type errandKey struct{}

// Poll implements [cache.Origin].
func (e *errand) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	route := e.route.Swap(nil)
	if route == nil {
		return policy.Answer{At: time.Now(), URL: ask.URL, Failure: policy.FailureNotStarted, Err: errNoRoute}
	}
	key := ask.URL
	ask.URL = e.url
	if ask.Validators.URL == key {
		ask.Validators.URL = ask.URL
	}
	a := e.site.client.Poll(context.WithValue(ctx, errandKey{}, &leg{route, e.fields}), ask)
	switch {
	case errors.Is(a.Err, errNotShared):
		a.Failure, a.Err = policy.FailureNotShared, errNotShared
	case errors.Is(a.Err, errNoFeed):
		a.Failure, a.Err = policy.FailureNotFeed, errNoFeed
	case a.Failure == policy.FailureGone:
		a.Failure = policy.FailureStatus // a site of one's own may change its mind
	}
	a.URL = key
	return a
}

var (
	errNoRoute   = errors.New("no request has shown the way to the site yet")
	errNotShared = errors.New("the site's answer is its reader's own")
	errNoFeed    = errors.New("the site's answer is of a kind that feeds are not")
)

// leg is what a request of a poll needs on its way from the poller to the route.
type leg struct {
	route  *route
	fields http.Header
}

// RoundTrip sends a poll down its route, unless its answer is not for everybody.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	l := r.Context().Value(errandKey{}).(*leg)
	for name, values := range l.fields {
		r.Header[name] = values
	}
	resp, err := l.route.RoundTrip(r)
	if failed, ok := errors.AsType[caddyhttp.HandlerError](err); ok && failed.StatusCode != 0 {
		// Caddy makes an answer of it, for whoever asks.
		return &http.Response{StatusCode: failed.StatusCode, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	if err != nil {
		return nil, err
	}
	err = unfit(resp)
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	if resp.StatusCode == http.StatusOK && resp.Header.Get("Content-Encoding") == "" {
		resp.Body = &sniffed{ReadCloser: resp.Body}
	}
	return resp, nil
}

// unfit tells why an answer must not be kept for others (RFC 9111 section 3), is one
// that the publisher wants readers themselves to see, or is no feed. Errors keep
// nothing back from anybody, whatever they say of themselves: a feed that is stored
// outlives them.
func unfit(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusNotModified:
		control := policy.ParseCacheControl(resp.Header.Values("Cache-Control"))
		if control.Has("private") || control.Has("no-store") || slices.Contains(cache.VaryFields(resp.Header), "*") {
			return errNotShared
		}
		if resp.StatusCode == http.StatusOK && neverFeed(resp.Header.Get("Content-Type")) {
			return errNoFeed
		}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return errNotShared
	}
	return nil
}

// neverFeed reports whether a media type is of something else, however feeds may be
// mislabelled. Such an answer need not be awaited to its end.
func neverFeed(contentType string) bool {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return false
	}
	kind, _, _ := strings.Cut(media, "/")
	switch kind {
	case "image", "audio", "video", "font", "multipart":
		return true
	}
	switch media {
	case "text/css", "text/javascript", "application/javascript", "text/event-stream", "application/pdf", "application/zip":
		return true
	}
	return false
}

// sniffed is a body that breaks off where it begins like something that is no feed:
// a page may go on for as long as its reader stays.
type sniffed struct {
	io.ReadCloser
	begun bool
}

func (s *sniffed) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if !s.begun && n > 0 {
		s.begun = true
		if foreign(p[:n]) {
			return 0, errNoFeed
		}
	}
	return n, err
}

// foreign reports whether a beginning is of an HTML page, or of bytes that are no text.
func foreign(beginning []byte) bool {
	text := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(beginning[:min(len(beginning), 512)], []byte("\xef\xbb\xbf")), " \t\r\n"))
	if bytes.HasPrefix(text, []byte("<!doctype html")) || bytes.HasPrefix(text, []byte("<html")) {
		return true
	}
	kind := http.DetectContentType(beginning)
	return !strings.HasPrefix(kind, "text/") && kind != "application/octet-stream"
}

// Interface guards.
var (
	_ cache.Site        = (*errand)(nil)
	_ http.RoundTripper = (*site)(nil)
)
