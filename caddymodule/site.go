// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// shieldPrefix begins the keys of shielded feeds: shield://host/path?query.
const shieldPrefix = "shield://"

// site is what stands behind a shield, as the origin of its feeds. Polls go down
// the route that the latest request has shown.
type site struct {
	client *upstream.Client
	rules  policy.Rules
	route  atomic.Pointer[route]
}

func newSite(rules policy.Rules) *site {
	s := &site{rules: rules}
	s.client = upstream.New(upstream.WithTransport(s))
	return s
}

// apply tells the poller who it is. Feeds of one site do not wait for each other:
// the site is ours, and what paces it are the feeds' own intervals.
func (s *site) apply(version, contact string) {
	s.client.Apply(upstream.Settings{
		Version: version, Contact: contact,
		Hosts: []upstream.HostRule{{Pattern: "*", Spacing: -1, Concurrency: 64}},
	})
}

// Rules implements [cache.Site].
func (s *site) Rules() policy.Rules { return s.rules }

// Ready implements [cache.Origin].
func (s *site) Ready(string) (time.Time, string) { return time.Time{}, "" }

// Hold implements [cache.Origin].
func (s *site) Hold(string, time.Time, string) {}

// Poll implements [cache.Origin].
func (s *site) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	if s.route.Load() == nil {
		return policy.Answer{At: time.Now(), URL: ask.URL, Failure: policy.FailureNotStarted, Err: errNoRoute}
	}
	key := ask.URL
	ask.URL = "http://" + strings.TrimPrefix(key, shieldPrefix)
	if ask.Validators.URL == key {
		ask.Validators.URL = ask.URL
	}
	a := s.client.Poll(ctx, ask)
	if errors.Is(a.Err, errNotShared) {
		a.Failure, a.Err = policy.FailureNotShared, errNotShared
	}
	a.URL = key
	return a
}

var (
	errNoRoute   = errors.New("no request has shown the way to the site yet")
	errNotShared = errors.New("the site's answer is its reader's own")
)

// RoundTrip sends a poll down the route, unless its answer is not for everybody.
func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	if more, ok := r.Context().Value(variantKey{}).(http.Header); ok {
		for name, values := range more {
			r.Header[name] = values
		}
	}
	resp, err := s.route.Load().RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if notShared(resp) {
		resp.Body.Close()
		return nil, errNotShared
	}
	return resp, nil
}

// notShared reports whether an answer must not be kept for others (RFC 9111
// section 3), or is one that the publisher wants readers themselves to see.
func notShared(resp *http.Response) bool {
	control := policy.ParseCacheControl(resp.Header.Values("Cache-Control"))
	if control.Has("private") || control.Has("no-store") {
		return true
	}
	if slices.Contains(cache.VaryFields(resp.Header), "*") {
		return true
	}
	return resp.StatusCode >= 300 && resp.StatusCode < 400 && resp.StatusCode != http.StatusNotModified
}

// variant is the site as it answers requests with some header fields that it
// tells readers apart by (RFC 9110 section 12.5.5).
type variant struct {
	*site
	fields http.Header
}

type variantKey struct{}

// Poll implements [cache.Origin].
func (v *variant) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	key := ask.URL
	ask.URL, _, _ = strings.Cut(key, variantMark)
	if ask.Validators.URL == key {
		ask.Validators.URL = ask.URL
	}
	a := v.site.Poll(context.WithValue(ctx, variantKey{}, v.fields), ask)
	a.URL = key
	return a
}

// variantMark stands in a key between the feed and the fields of a variant. No
// URL has a space in it.
const variantMark = " "

// varied is the key and the fields of the variant that a request asks for. It is
// false where that is the plain feed: the request has none of the fields.
func varied(key string, fields []string, h http.Header) (string, http.Header, bool) {
	var text strings.Builder
	text.WriteString(key)
	sent := http.Header{}
	for _, name := range fields {
		name = http.CanonicalHeaderKey(name)
		if values := h[name]; len(values) > 0 {
			sent[name] = values
			text.WriteString(variantMark + name + "=" + strings.Join(values, ","))
		}
	}
	return text.String(), sent, len(sent) > 0
}

// Interface guards.
var (
	_ cache.Site        = (*site)(nil)
	_ cache.Site        = (*variant)(nil)
	_ http.RoundTripper = (*site)(nil)
)
