// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

const (
	maxPostHops = 3 // redirects of a POST that are followed
	postTimeout = 30 * time.Second
)

var (
	errPublic  = errors.New("a feed at a private address is not announced by a hub at a public one")
	errNoTLS   = errors.New("a hub needs https, as it is given a secret")
	errNoOther = errors.New("too many redirects")
	errPaused  = errors.New("the hub has asked for a pause")
)

// Post sends a form to a hub, when its host may have another request in flight and its spacing has
// passed. It returns the status of the response, and the end of the pause that the hub asks for,
// in which this client sends it nothing else. The client has pacing.
// The hub of a private feed must be at a private address too, which Settings.Private has; only
// such a hub may do without https. Hubs of other feeds must be at public addresses.
func (c *Client) Post(ctx context.Context, hub feedurl.URL, form url.Values, private bool) (status int, until time.Time, err error) {
	if !c.begin() {
		return 0, time.Time{}, ErrClosed
	}
	defer c.polls.Done()
	ctx, stop := c.untilClosed(ctx)
	defer stop()
	for range maxPostHops + 1 {
		var location string
		if status, until, location, err = c.post(ctx, hub, form, private); err != nil || location == "" {
			return status, until, err
		}
		p := &poll{url: hub}
		if hub, err = p.resolve(location); err != nil {
			return status, until, fmt.Errorf("redirect %w", err)
		}
	}
	return status, until, errNoOther
}

// post sends one request.
func (c *Client) post(ctx context.Context, hub feedurl.URL, form url.Values, private bool) (status int, until time.Time, location string, err error) {
	x := &exchange{client: c, guard: c.guardOf(hub, !private)}
	x.guard.own, x.guard.chosen = false, false // the operator has named the feed, and not the hub
	if err := c.resolve(ctx, x.guard, hub); err != nil {
		_, err = failureOf(ctx, phaseLookup, false, err)
		return 0, until, "", err
	}
	h, err := c.enter(ctx, hub)
	if err != nil {
		return 0, until, "", err
	}
	defer c.hosts.leave(h)
	sleep(ctx, c.hosts.gap(h, c.now()))
	if until := c.hosts.hubPause(h, time.Time{}, c.now()); !until.IsZero() {
		return 0, until, "", errPaused
	}
	ctx, cancel := context.WithTimeoutCause(ctx, postTimeout, errTimeout)
	defer cancel()
	x.send = func() error {
		switch near := x.guard.off || x.guard.near; {
		case private && !near:
			return errPublic
		case hub.Scheme() != "https" && !near:
			return errNoTLS
		}
		return ctx.Err()
	}
	body := form.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "", strings.NewReader(body))
	if err != nil {
		return 0, until, "", err
	}
	r.URL, r.Host = hub.RequestURL(), hub.HostPort()
	r.Header = http.Header{"User-Agent": {c.settings.Load().Agent(0)}, "Content-Type": {"application/x-www-form-urlencoded"}}
	resp, err := x.do(r, hub)
	if errors.Is(err, errPublic) || errors.Is(err, errNoTLS) {
		return 0, until, "", err
	} else if err != nil {
		_, err = failureOf(ctx, phase(x.phase.Load()), false, err)
		return 0, until, "", err
	}
	resp.Body.Close()
	// W3C WebSub section 5.1.2: a hub redirects with 307 or 308 alone.
	if s := resp.StatusCode; s == http.StatusTemporaryRedirect || s == http.StatusPermanentRedirect {
		location = resp.Header.Get("Location")
	}
	if resp.StatusCode >= http.StatusBadRequest {
		until = policy.RetryAfter(resp.Header, c.now()).Until
		if until.IsZero() && resp.StatusCode == http.StatusTooManyRequests {
			until = c.now().Add(policy.BarePause)
		}
		c.hosts.hubPause(h, until, c.now())
	}
	return resp.StatusCode, until, location, nil
}
