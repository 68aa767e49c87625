// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

var (
	errTimeout = errors.New("no complete answer in time")
	errLate    = errors.New("it is too late to send the request")
)

// poll is a poll in flight.
type poll struct {
	client   *Client
	ask      policy.Ask
	settings *Settings
	answer   policy.Answer

	url     feedurl.URL          // of the current request
	left    time.Duration        // of the poll's timeout
	hopWait time.Duration        // left for its redirects to wait for their hosts
	host    *host                // that the last request was sent to; nil if requests are not counted
	timer   *time.Timer          // ends the current request
	started time.Time            // when the timer was started
	user    *url.Userinfo        // credentials; nil: none, or the redirects have left their origin
	origin  string               // that the credentials belong to
	visited map[feedurl.URL]bool // URLs without credentials, since a response set a cookie
	cookies http.CookieJar       // of this poll alone; nil until a redirect sets one
	public  bool                 // a response came from a public address
}

func newPoll(c *Client, ask policy.Ask) *poll {
	u := ask.URL
	if u.User() != nil {
		ask.Subscribers = 0 // the readers of private feeds are not counted in public
	}
	return &poll{
		client:   c,
		ask:      ask,
		settings: c.settings.Load(),
		answer:   policy.Answer{URL: u.String()},
		url:      u,
		left:     ask.Timeout,
		hopWait:  policy.MaxHopWait,
		user:     u.User(),
		origin:   u.Origin(),
		visited:  make(map[feedurl.URL]bool),
	}
}

// run makes the poll. The caller has entered the URL's host, and leaves the one that it ends at.
func (p *poll) run(ctx context.Context) policy.Answer {
	p.hops(ctx)
	p.answer.At = p.client.now()
	return p.answer
}

// hops makes the requests. A poll that was claimed always has a result: a panic is a
// failure as well.
func (p *poll) hops(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			p.answer.Body = nil
			p.fail(policy.FailureInternal, plain("the gateway failed at the answer; its log says more",
				fmt.Errorf("panic: %v: %s", v, debug.Stack())))
		}
	}()
	for p.request(ctx) && p.follow(ctx) {
	}
}

// request sends one request. It reports whether the response is a redirect.
func (p *poll) request(ctx context.Context) (redirected bool) {
	t := p.url
	if t.Origin() != p.origin {
		p.user = nil
	}
	p.visited[t.WithUser(nil)] = true
	x := &exchange{client: p.client, guard: p.client.guardOf(t, p.public)}
	ctx, stop := p.clock(ctx)
	defer stop()
	if err := p.approach(ctx, x, t); err != nil {
		p.failed(ctx, phase(x.phase.Load()), err)
		return false
	}

	x.send = func() error { return p.send(ctx) }
	r, conditional := newRequest(ctx, t, p.settings.Agent(p.ask.Subscribers), p.user, p.ask.Validators)
	p.addCookies(r, t)
	begun, asked := p.client.now(), p.answer.Asked
	resp, err := x.do(r, t)
	if err != nil {
		if has[*proxyError](err) {
			p.answer.Asked = asked // the proxy has kept the request
		}
		at := phase(x.phase.Load())
		p.failed(ctx, at, err)
		if p.answer.Asked.IsZero() && reached(p.answer.Failure, at) {
			p.answer.Asked = begun
		}
		return false
	}
	defer resp.Body.Close()
	p.readPause(resp, x.guard.near)
	p.public = p.public || x.guard.public
	p.answer.Private = p.answer.Private || x.guard.near
	p.answer.URL, p.answer.Status, p.answer.Header = t.String(), resp.StatusCode, resp.Header
	if isRedirect(resp.StatusCode) {
		return true
	}
	p.take(ctx, resp, conditional)
	return false
}

// clock starts the poll's timer and returns a function that stops it. The time in which
// the poll waits for slots or for memory does not count.
func (p *poll) clock(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	p.timer, p.started = time.AfterFunc(p.left, func() { cancel(errTimeout) }), p.client.now()
	return ctx, func() {
		p.pause()
		cancel(nil)
	}
}

// pause stops the timer and reports whether it was running.
func (p *poll) pause() bool {
	if !p.timer.Stop() {
		return false
	}
	p.left -= p.client.now().Sub(p.started)
	return true
}

// room waits for room for a large body.
func (p *poll) room(ctx context.Context, size int64) error {
	if p.ask.Large == nil {
		return nil
	}
	var err error
	p.pauseTimer(func() { err = p.ask.Large(ctx, size) })
	return err
}

// pauseTimer waits, while the poll's timer stands.
func (p *poll) pauseTimer(wait func()) {
	running := p.pause()
	wait()
	if running {
		p.started = p.client.now()
		p.timer.Reset(p.left)
	}
}

// send is called just before a request is sent, on an open connection, and waits for the
// gap to the request before. The first one is sent by StartBy or not at all, by the wall
// clock: the monotonic clock does not count the time in which the machine was suspended.
func (p *poll) send(ctx context.Context) error {
	if p.host != nil {
		if gap := p.client.hosts.gap(p.host, p.client.now()); gap > 0 {
			p.pauseTimer(func() { sleep(ctx, gap) })
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := p.client.now()
	if p.answer.Asked.IsZero() {
		if by := p.ask.StartBy; !by.IsZero() && now.Round(0).After(by.Round(0)) {
			return errLate
		}
		p.answer.Asked = now
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// take makes the poll's result of a response that is not a redirect.
func (p *poll) take(ctx context.Context, resp *http.Response, conditional bool) {
	if resp.StatusCode == http.StatusNotModified && conditional {
		return
	}
	if resp.StatusCode == http.StatusNonAuthoritativeInfo {
		p.answer.Status = http.StatusOK // a proxy has changed it on its way (RFC 9110 section 15.3.4)
	}
	if p.answer.Status != http.StatusOK {
		p.answer.Page = p.readPage(resp)
		failure, err := failureOfStatus(resp.StatusCode)
		if resp.StatusCode >= http.StatusBadRequest && !policy.RateLimit(resp.Header, p.client.now()).Until.IsZero() {
			failure = policy.FailureRateLimited // whatever the status is
		}
		p.fail(failure, err)
		return
	}
	body, count, failure, err := p.client.readBody(resp, p.ask.MaxBody, func(size int64) error { return p.room(ctx, size) })
	p.answer.Wire += count
	switch {
	case err == nil:
		p.answer.Body = body
	case failure == policy.FailureTruncated && ctx.Err() == nil:
		p.answer.Body = body
		p.fail(failure, err)
	case failure == policy.FailureTruncated:
		p.failed(ctx, phaseSent, ctx.Err())
	default:
		p.fail(failure, err)
	}
}

func (p *poll) failed(ctx context.Context, at phase, err error) {
	p.fail(failureOf(ctx, at, !p.answer.Asked.IsZero(), err))
}

// fail ends the poll with a failure. The log gets what a [plainError] leaves out.
func (p *poll) fail(f policy.Failure, err error) {
	p.answer.Failure, p.answer.Err = f, fmt.Errorf("%s: %w", p.url.HostPort(), err)
	if address, ok := errors.AsType[*AddressError](err); ok && address.Address == p.url.Name() {
		p.answer.Err = address
	} else if told, ok := errors.AsType[*plainError](err); ok {
		const most = 4 << 10 // bytes
		detail := err.Error() + ": " + told.err.Error()
		p.answer.Detail = p.url.Redacted() + ": " + feedurl.OneLine(detail[:min(len(detail), most)])
	}
}

// reached reports whether a failure without a request came after the origin had accepted
// the connection.
func reached(f policy.Failure, at phase) bool {
	return f == policy.FailureTLS || f == policy.FailureTimeout || f == policy.FailureConnect && at == phaseHandshake
}
