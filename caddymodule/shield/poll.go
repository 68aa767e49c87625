// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// newClient returns a client that polls origin blocks. Polls of one site do not wait for each
// other: it is the operator's own, and the intervals of its feeds are enough.
func newClient(settings upstream.Settings) *upstream.Client {
	c := upstream.New(upstream.WithTransport(roundTripper{}), upstream.WithoutPacing())
	c.Apply(upstream.Settings{UserAgent: settings.UserAgent, Version: settings.Version, Contact: settings.Contact})
	return c
}

// feedOrigin is the [cache.Origin] of one feed: the origin block, asked for the feed's key.
type feedOrigin struct {
	shield *Shield
	key    poller.ShieldKey
	entry  *entry // of the key
}

// OriginOf returns the origin of a key's feed.
func (s *Shield) OriginOf(k poller.ShieldKey) cache.Origin {
	return &feedOrigin{s, k, s.entries.add(k.String())}
}

// Rules returns the operator's rules for the feeds of the shield.
func (s *Shield) Rules() policy.Rules { return s.rules }

// Server implements [poller.Shield].
func (s *Shield) Server() *caddyhttp.Server { return s.origin.server }

// serves reports whether the shield serves the feed of a key.
func (s *Shield) serves(key string) bool {
	k, ok := poller.ParseShieldKey(key)
	return ok && s.app.Serves(s, k)
}

// Acquire implements [cache.Origin]: a block of handlers may be asked at any time.
func (o *feedOrigin) Acquire(feedurl.URL) policy.Slot { return o }
func (o *feedOrigin) Release()                        {}
func (o *feedOrigin) Host(feedurl.URL) policy.Host    { return policy.Host{} }

func (o *feedOrigin) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	key := o.key.String()
	var err error
	if ask.URL, err = feedurl.Parse(o.key.URL()); err != nil {
		return policy.Answer{At: time.Now(), URL: key, Failure: policy.FailureInternal, Err: err}
	}
	if ask.Validators.URL == key {
		ask.Validators.URL = ask.URL.String()
	}
	a := o.shield.client.Poll(context.WithValue(ctx, originContextKey{}, o), ask)
	unshared, isUnshared := errors.AsType[*unsharedError](a.Err)
	switch {
	case isUnshared:
		a.Failure, a.Err, a.Status = policy.FailureNotShared, unshared, unshared.status
	case errors.Is(a.Err, errNotFeed):
		a.Failure, a.Err = policy.FailureNotFeed, errNotFeed
	case a.Status == http.StatusUnauthorized, a.Status == http.StatusGone:
		// The publisher has withdrawn the feed, so the stored version must not be served.
		a.Failure, a.Err = policy.FailureNotShared, &unsharedError{"status " + strconv.Itoa(a.Status), a.Status}
	}
	o.record(a)
	a.URL = key
	return a
}

// record records whether a poll has brought a feed that may be shared. If it has not, the
// requests that follow go to the origin.
func (o *feedOrigin) record(a policy.Answer) {
	e := o.entry
	e.unshared.Store(nil)
	if unshared, ok := errors.AsType[*unsharedError](a.Err); ok && unshared.status == http.StatusOK {
		e.unshared.Store(&unshared.why)
	}
	e.loops.Store(a.Status == http.StatusLoopDetected)
	clientError := a.Status >= 400 && a.Status < 500 && a.Status != http.StatusTooManyRequests
	switch {
	case a.Failure == policy.FailureNotShared, (a.Failure == policy.FailureNotFeed || clientError) && !e.feed.Load():
		e.bypass(time.Now())
	case a.Failure == policy.FailureNone:
		e.feed.Store(true)
	}
}

var errNotFeed = errors.New("the site's response is not a feed")

// unsharedError is the error of a poll whose response may not be shared.
type unsharedError struct {
	why    string // the field that forbids it, such as Cache-Control: no-store, or the status
	status int    // 200: of a feed; 0: of something else
}

// unsharedText begins the error.
const unsharedText = "the site's response may not be shared: "

func (e *unsharedError) Error() string { return unsharedText + e.why }

// originContextKey is the context key of the [feedOrigin] that a poll is for.
type originContextKey struct{}

// roundTripper sends the requests of polls to their origin blocks.
type roundTripper struct{}

// RoundTrip implements [http.RoundTripper]. It ends a response that cannot be shared, and one
// that is not a feed as soon as its first bytes show that.
func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	o := r.Context().Value(originContextKey{}).(*feedOrigin)
	resp, err := o.shield.origin.poll(r, o.key)
	if failed, ok := errors.AsType[caddyhttp.HandlerError](err); ok && failed.StatusCode != 0 {
		// Caddy would answer with this status.
		return &http.Response{StatusCode: failed.StatusCode, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	}
	if errors.Is(err, errNoHandler) {
		return nil, errNotFeed // the handlers after the shield answer
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusNonAuthoritativeInfo { // it counts as a 200
		resp.StatusCode = http.StatusOK
	}
	o.shield.ignoreVary(resp.Header)
	if err := checkShared(resp); err != nil {
		if unshared, ok := errors.AsType[*unsharedError](err); ok && resp.StatusCode == http.StatusOK && bringsFeed(resp) {
			unshared.status = http.StatusOK
		}
		drain(resp.Body)
		return nil, err
	}
	body := &detectingBody{ReadCloser: resp.Body}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Encoding") != "" {
		body.result = isFeed // its bytes show nothing
	}
	resp.Body = body
	return resp, nil
}

const (
	// drainSize and drainTime bound how much of a body is read to its end, and how long.
	drainSize = 256 << 10
	drainTime = 100 * time.Millisecond
)

// drain closes a body. It reads a short body to its end first, because a reverse proxy logs a
// warning for each response that it cannot pass on completely.
func drain(body io.ReadCloser) {
	timer := time.AfterFunc(drainTime, func() { body.Close() })
	_, _ = io.CopyN(io.Discard, body, drainSize)
	timer.Stop()
	body.Close()
}

// bringsFeed reports whether a response of which nothing has been read seems to be a feed.
func bringsFeed(resp *http.Response) bool {
	contentType := resp.Header.Get("Content-Type")
	if neverFeed(contentType) {
		return false
	}
	if resp.Header.Get("Content-Encoding") != "" {
		return feedType(contentType)
	}
	timer := time.AfterFunc(drainTime, func() { resp.Body.Close() })
	defer timer.Stop()
	prefix, _ := io.ReadAll(io.LimitReader(resp.Body, prefixSize))
	return detect(prefix, true) == isFeed
}

// checkShared reports why a response is not stored: it may not be shared (RFC 9111 section
// 3), it is a redirect, which readers follow themselves, or it is not a feed. Errors pass: a
// stored version outlives them.
func checkShared(resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusOK, resp.StatusCode == http.StatusNotModified:
		control := policy.ParseCacheControl(resp.Header.Values("Cache-Control"))
		switch {
		case control.Has("no-store"):
			return &unsharedError{why: "Cache-Control: no-store"}
		case control.Has("private"):
			return &unsharedError{why: "Cache-Control: private"}
		case slices.Contains(version.VaryFields(resp.Header), "*"):
			return &unsharedError{why: "Vary: *"}
		}
		if resp.StatusCode == http.StatusOK && neverFeed(resp.Header.Get("Content-Type")) {
			return errNotFeed
		}
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return &unsharedError{why: "status " + strconv.Itoa(resp.StatusCode)}
	}
	return nil
}
