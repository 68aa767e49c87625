// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// newClient returns a poller of an origin block. Its feeds do not wait for each
// other: the site is the operator's own, and what paces it are the feeds' own
// intervals.
func newClient(settings upstream.Settings) *upstream.Client {
	c := upstream.New(upstream.WithTransport(roundTripper{}), upstream.WithoutPacing())
	c.Apply(upstream.Settings{UserAgent: settings.UserAgent, Version: settings.Version, Contact: settings.Contact})
	return c
}

// polled is the origin of one feed of a shield.
type polled struct {
	shield *Shield
	key    poller.ShieldKey
	entry  *entry // what is known of the key; nil: nothing
}

// OriginOf is where the feed of a key is polled. It is nil for a variant of which the
// header fields are not known, which may not be polled before a reader has brought them.
func (s *Shield) OriginOf(k poller.ShieldKey) cache.Origin {
	e := s.known.get(k.String())
	if k.Variant != "" && e == nil {
		return nil
	}
	return &polled{s, k, e}
}

// Rules are the operator's rules for the feeds of the shield.
func (s *Shield) Rules() policy.Rules { return s.rules }

// Acquire implements [cache.Origin]: the site may be asked at any time.
func (p *polled) Acquire(context.Context, feedurl.URL, bool) (policy.Slot, error) { return p, nil }

// Release implements [policy.Slot].
func (p *polled) Release() {}

// Host implements [cache.Origin]: a site of the operator's own need not be spared.
func (p *polled) Host(feedurl.URL) policy.Host { return policy.Host{} }

// Held implements [cache.Origin].
func (p *polled) Held(feedurl.URL) *policy.Held { return nil }

// Busy implements [cache.Origin].
func (p *polled) Busy() []string { return nil }

// Hold implements [cache.Origin].
func (p *polled) Hold([]policy.Pause) {}

// Poll implements [policy.Slot].
func (p *polled) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	key := p.key.String()
	var err error
	if ask.URL, err = feedurl.Parse(p.key.URL()); err != nil {
		return policy.Answer{At: time.Now(), URL: key, Failure: policy.FailureInternal, Err: err}
	}
	if ask.Validators.URL == key {
		ask.Validators.URL = ask.URL.String()
	}
	if p.entry != nil {
		p.entry.promising.Store(false)
		p.entry.ahead.Store(false)
	}
	a := p.shield.client.Poll(context.WithValue(ctx, polledKey{}, p), ask)
	switch {
	case errors.Is(a.Err, errNotShared):
		a.Failure, a.Err = policy.FailureNotShared, errNotShared
	case errors.Is(a.Err, errNotFeed):
		a.Failure, a.Err = policy.FailureNotFeed, errNotFeed
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusGone:
		// The publisher has taken it back. Others' feeds outlive this, one's own must not.
		a.Failure, a.Err = policy.FailureNotShared, fmt.Errorf("%w: status %d", errNotShared, a.Status)
	}
	p.learn(a)
	a.URL = key
	return a
}

// learn notes whether an answer was a feed for everybody. What was not leaves
// nothing in the store.
func (p *polled) learn(a policy.Answer) {
	e := p.entry
	if e == nil {
		return
	}
	clientError := a.Status >= 400 && a.Status < 500 && a.Status != http.StatusTooManyRequests
	switch {
	case a.Failure == policy.FailureNotShared, (a.Failure == policy.FailureNotFeed || clientError) && !e.feed.Load():
		e.pass(time.Now())
		p.shield.engine.Evict(e.key)
	case a.Failure == policy.FailureNone:
		e.feed.Store(true)
	}
}

var (
	errNotShared = errors.New("the site's answer is not for everybody")
	errNotFeed   = errors.New("the site's answer is no feed")
)

// polledKey is where the transport finds whose poll a request belongs to.
type polledKey struct{}

// roundTripper sends the requests of polls to their origin blocks.
type roundTripper struct{}

// RoundTrip implements [http.RoundTripper]. It breaks off what is not for everybody,
// and what is no feed as soon as that can be told.
func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	p := r.Context().Value(polledKey{}).(*polled)
	if p.entry != nil {
		for name, values := range p.entry.fields {
			r.Header[name] = values
		}
	}
	resp, err := p.shield.origin.ask(r, p.key)
	if failed, ok := errors.AsType[caddyhttp.HandlerError](err); ok && failed.StatusCode != 0 {
		// Caddy makes an answer of it, for whoever asks.
		return &http.Response{StatusCode: failed.StatusCode, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	if errors.Is(err, errUnanswered) {
		return nil, errNotFeed // what follows the shield answers
	}
	if err != nil {
		return nil, err
	}
	if err := unfit(resp); err != nil {
		finish(resp.Body)
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		resp.Body = &sniffed{ReadCloser: resp.Body, coded: resp.Header.Get("Content-Encoding") != "", entry: p.entry}
	} else {
		resp.Body = unwanted{resp.Body}
	}
	return resp, nil
}

// unwanted is the body of an answer of which only status and header count.
type unwanted struct{ io.ReadCloser }

// Close implements [io.Closer].
func (u unwanted) Close() error {
	finish(u.ReadCloser)
	return nil
}

const (
	// restSize and restPatience are how much of an answer is read, and how long, that
	// is not wanted any more.
	restSize     = 256 << 10
	restPatience = 100 * time.Millisecond
)

// finish closes the body of an answer that is not wanted. What is short comes to its
// end before: a reverse proxy warns of each answer that it cannot pass on whole.
func finish(body io.ReadCloser) {
	enough := time.AfterFunc(restPatience, func() { body.Close() })
	_, _ = io.CopyN(io.Discard, body, restSize)
	enough.Stop()
	body.Close()
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
			return errNotFeed
		}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return errNotShared
	}
	return nil
}

// Interface guard.
var _ cache.Origin = (*polled)(nil)
