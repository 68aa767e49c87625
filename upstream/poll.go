// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// hopPatience is how long a redirect may wait for the slot of its host. By then
// the poll is under way and its feed is reserved, so the wait must have an end.
const hopPatience = 2 * time.Minute

var (
	errTimeout = errors.New("no complete answer in time")
	errLate    = errors.New("the slot came too late")
)

// poll is one poll under way.
type poll struct {
	client   *Client
	ask      policy.Ask
	settings *Settings
	answer   policy.Answer

	left    time.Duration        // of the time that the poll may take; only where there is a bound
	user    *url.Userinfo        // credentials; nil: none, or the redirects have left their origin
	origin  string               // that the credentials belong to
	visited map[feedurl.URL]bool // without credentials
	targets []feedurl.URL        // in order
	public  bool                 // a public address has answered
}

func newPoll(c *Client, ask policy.Ask) *poll {
	return &poll{
		client:   c,
		ask:      ask,
		settings: c.settings.Load(),
		answer:   policy.Answer{URL: ask.URL},
		left:     ask.Timeout,
		visited:  make(map[feedurl.URL]bool),
	}
}

// run follows the poll to its end.
func (p *poll) run(ctx context.Context) policy.Answer {
	t, err := feedurl.Parse(p.ask.URL)
	if err != nil {
		p.fail(policy.FailureNotStarted, err)
		p.answer.At = time.Now()
		return p.answer
	}
	p.answer.URL, p.user, p.origin = t.String(), t.User(), t.Origin()
	for more := true; more; {
		t, more = p.hop(ctx, t)
	}
	p.answer.At = time.Now()
	p.explainPause()
	return p.answer
}

// hop asks one URL. It returns the URL to be asked next, where there is one.
func (p *poll) hop(ctx context.Context, t feedurl.URL) (next feedurl.URL, more bool) {
	if t.Origin() != p.origin {
		p.user = nil
	}
	p.visited[t.WithUser(nil)] = true
	p.targets = append(p.targets, t)
	s := p.acquire(ctx, t)
	if s == nil {
		return feedurl.URL{}, false
	}
	var v verdict
	defer func() { s.release(v) }()
	ctx, stop := p.clock(ctx)
	defer stop()

	x := &exchange{client: p.client, guard: guard{private: p.settings.Private, moved: p.public}}
	x.leave = func() error { return p.leave(ctx, s) }
	r, conditional := newRequest(ctx, t, p.settings.agent(p.ask.Subscribers), p.user, p.ask.Validators)
	resp, err := x.do(r, t)
	if err != nil {
		p.failed(ctx, t, phase(x.phase.Load()), err)
		return feedurl.URL{}, false
	}
	defer resp.Body.Close()
	v = verdictOf(resp.StatusCode, resp.Header, time.Now())
	v.private = x.guard.peer == peerPrivate
	p.public = p.public || x.guard.peer == peerPublic
	p.answer.URL, p.answer.Status, p.answer.Header = t.String(), resp.StatusCode, resp.Header
	if isRedirect(resp.StatusCode) {
		return p.follow(t, resp.StatusCode, resp.Header)
	}
	p.take(ctx, t, resp, conditional)
	return feedurl.URL{}, false
}

// acquire waits for the slot of a hop's host.
func (p *poll) acquire(ctx context.Context, t feedurl.URL) *slot {
	by, redirected := p.ask.StartBy, len(p.answer.Moves) > 0
	if redirected {
		by = time.Now().Add(hopPatience)
	}
	if s := p.client.pacer.acquire(ctx, t, by, redirected); s != nil {
		return s
	}
	switch at, why := p.client.pacer.ready(t, time.Now()); {
	case ctx.Err() != nil:
		p.failed(ctx, t, phaseConnecting, ctx.Err())
	case redirected:
		p.fail(policy.FailureRateLimited, fmt.Errorf("%s: redirected to a host that is not to be asked before %s (%s)",
			t.HostPort(), at.UTC().Format(time.RFC3339), why))
	case why == "":
		p.fail(policy.FailureNotStarted, fmt.Errorf("%s: %w", t.HostPort(), errLate))
	default:
		p.fail(policy.FailureNotStarted, fmt.Errorf("%s: not to be asked before %s (%s)", t.HostPort(), at.UTC().Format(time.RFC3339), why))
	}
	return nil
}

// clock starts the poll's clock; the function that it returns stops it. It stands
// while the poll waits for a slot.
func (p *poll) clock(ctx context.Context) (context.Context, func()) {
	if p.ask.Timeout <= 0 {
		return ctx, func() {}
	}
	started := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, p.left, errTimeout)
	return ctx, func() {
		p.left -= time.Since(started)
		cancel()
	}
}

// leave is the moment at which a request leaves. The first one leaves in time or
// not at all, by the wall clock: a machine that slept since the poll was reserved
// is late, whatever its monotonic clock says.
func (p *poll) leave(ctx context.Context, s *slot) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := time.Now()
	if p.answer.Asked.IsZero() {
		if by := p.ask.StartBy; !by.IsZero() && wall(now).After(wall(by)) {
			return errLate
		}
		p.answer.Asked = now
	}
	s.sent(now)
	return nil
}

// take makes the poll's result of an answer that is no redirect.
func (p *poll) take(ctx context.Context, t feedurl.URL, resp *http.Response, conditional bool) {
	if resp.StatusCode != http.StatusOK {
		p.fail(classifyStatus(t, resp.StatusCode, conditional))
		return
	}
	body, count, failure, err := readBody(resp, p.ask.MaxBody)
	p.answer.Wire += count
	switch {
	case err == nil:
		p.answer.Body = body
	case ctx.Err() != nil && failure == policy.FailureTruncated:
		p.failed(ctx, t, phaseSent, ctx.Err())
	default:
		p.fail(failure, fmt.Errorf("%s: %w", t.HostPort(), err))
	}
}

func (p *poll) fail(f policy.Failure, err error) {
	p.answer.Failure, p.answer.Err = f, err
}

func (p *poll) failed(ctx context.Context, t feedurl.URL, at phase, err error) {
	p.fail(classify(ctx, t, at, !p.answer.Asked.IsZero(), err))
}

// explainPause tells when the same poll could be made again: none of the hosts
// that it led to may be in a cool-down.
func (p *poll) explainPause() {
	for i, t := range p.targets {
		at, why := p.client.pacer.ready(t, p.answer.At)
		if i > 0 {
			if why == HeldBySlot {
				continue // by then the gap is over
			}
			if scopeOf(t).host != scopeOf(p.targets[0]).host && why != "" {
				why = HeldByRedirect
			}
		}
		if at.After(p.answer.NotBefore) {
			p.answer.NotBefore, p.answer.Holder = at, why
		}
	}
}
