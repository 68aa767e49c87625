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
	errLate    = errors.New("the slot came too late")
	errOther   = errors.New("the slot is that of another URL")
)

// poll is a poll in flight.
type poll struct {
	client   *Client
	ask      policy.Ask
	settings *Settings
	answer   policy.Answer

	url     feedurl.URL          // of the current request
	left    time.Duration        // of the poll's timeout, if it has one
	hopWait time.Duration        // left for its redirects to wait for their hosts
	timer   *time.Timer          // ends the current request; nil: there is no timeout
	started time.Time            // when the timer was started
	user    *url.Userinfo        // credentials; nil: none, or the redirects have left their origin
	origin  string               // that the credentials belong to
	targets []feedurl.URL        // in order
	visited map[feedurl.URL]bool // the same without credentials
	public  bool                 // a response came from a public address
	pauses  []pauseUntil
	held    []policy.Held // pauses of this feed only
}

func newPoll(c *Client, u feedurl.URL, ask policy.Ask) *poll {
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

// run makes the poll, starting with the slot of its URL's host.
func (p *poll) run(ctx context.Context, s *slot) policy.Answer {
	p.hops(ctx, s)
	p.answer.At = p.client.now()
	p.explainPauses()
	return p.answer
}

// hops makes the requests. A poll that was claimed always has a result: a panic is a
// failure as well.
func (p *poll) hops(ctx context.Context, s *slot) {
	defer func() {
		if v := recover(); v != nil {
			p.answer.Body = nil
			p.fail(policy.FailureInternal, plain("the gateway failed at the answer; its log says more",
				fmt.Errorf("panic: %v: %s", v, debug.Stack())))
		}
	}()
	if p.ask.URL != p.url {
		s.cancel()
		p.fail(policy.FailureInternal, errOther)
		return
	}
	for s != nil && p.request(ctx, s) {
		s = p.follow(ctx)
	}
}

// request sends one request and gives the slot back. It reports whether the response is
// a redirect.
func (p *poll) request(ctx context.Context, s *slot) (redirected bool) {
	var v hint
	defer func() { p.pauses = append(p.pauses, s.release(v)...) }()
	t := p.url
	if t.Origin() != p.origin {
		p.user = nil
	}
	p.targets = append(p.targets, t)
	p.visited[t.WithUser(nil)] = true
	x := &exchange{client: p.client, guard: p.client.guardOf(t, p.public)}
	if err := x.guard.checkHost(t); err != nil {
		p.fail(policy.FailureAddress, err)
		return false
	}
	ctx, stop := p.clock(ctx)
	defer stop()

	x.send = func() error { return p.send(ctx, s) }
	r, conditional := newRequest(ctx, t, p.settings.Agent(p.ask.Subscribers), p.user, p.ask.Validators)
	begun := p.client.now()
	resp, err := x.do(r, t)
	if err != nil {
		p.failed(ctx, phase(x.phase.Load()), err)
		if p.answer.Asked.IsZero() && reached(p.answer.Failure) {
			p.answer.Asked = begun
		}
		return false
	}
	defer resp.Body.Close()
	v = hintOf(resp.StatusCode, resp.Header, p.client.now(), p.client.pacer.clock.now())
	if v.urlOnly = t.IsPrivate() || x.guard.dialed == dialedPrivate; v.urlOnly && !v.until.IsZero() && !p.client.pacer.off {
		p.held = append(p.held, policy.Held{Until: p.client.pacer.clock.wall(v.until), Why: policy.HintURLCooldown})
	}
	p.public = p.public || x.guard.dialed == dialedPublic
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
	if p.ask.Timeout <= 0 {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	p.timer, p.started = time.AfterFunc(p.left, func() { cancel(errTimeout) }), p.client.now()
	return ctx, func() {
		p.pause()
		cancel(nil)
	}
}

// pause stops the timer and reports whether it was running.
func (p *poll) pause() bool {
	if p.timer == nil || !p.timer.Stop() {
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
	running := p.pause()
	err := p.ask.Large(ctx, size)
	if running {
		p.started = p.client.now()
		p.timer.Reset(p.left)
	}
	return err
}

// send is called just before a request is sent. The first one is sent by StartBy or not
// at all, by the wall clock: the monotonic clock does not count the time in which the
// machine was suspended.
func (p *poll) send(ctx context.Context, s *slot) error {
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
	s.sent()
	return nil
}

// take makes the poll's result of a response that is not a redirect.
func (p *poll) take(ctx context.Context, resp *http.Response, conditional bool) {
	if resp.StatusCode == http.StatusNotModified && conditional {
		return
	}
	if resp.StatusCode != http.StatusOK {
		failure, err := classifyStatus(resp.StatusCode)
		p.fail(failure, err)
		return
	}
	body, count, failure, err := readBody(resp, p.ask.MaxBody, func(size int64) error { return p.room(ctx, size) })
	p.answer.Wire += count
	switch {
	case err == nil:
		p.answer.Body = body
	case ctx.Err() != nil && failure == policy.FailureTruncated:
		p.failed(ctx, phaseSent, ctx.Err())
	default:
		p.fail(failure, err)
	}
}

func (p *poll) failed(ctx context.Context, at phase, err error) {
	p.fail(classify(ctx, at, !p.answer.Asked.IsZero(), err))
}

// fail ends the poll with a failure. The log gets what a [plainError] leaves out.
func (p *poll) fail(f policy.Failure, err error) {
	p.answer.Failure, p.answer.Err = f, err
	if address, ok := errors.AsType[*AddressError](err); !ok || address.Address != p.url.Name() {
		p.answer.Err = fmt.Errorf("%s: %w", p.url.HostPort(), err)
	}
	if told, ok := errors.AsType[*plainError](err); ok {
		const most = 4 << 10 // bytes
		detail := err.Error() + ": " + told.err.Error()
		p.answer.Detail = p.url.Redacted() + ": " + feedurl.OneLine(detail[:min(len(detail), most)])
	}
}

// explainPauses records the pauses that hosts asked for during the poll, and the earliest
// time at which all hosts on its path may be polled again.
func (p *poll) explainPauses() {
	a, now := &p.answer, p.client.pacer.clock.now()
	for _, made := range p.pauses {
		if left := made.until.Sub(now); left > 0 {
			a.Pauses = append(a.Pauses, policy.Pause{Scope: made.scope, For: left, Why: made.why, Step: made.step})
		}
	}
	held := p.held
	for i, u := range p.targets {
		left, why := p.client.pacer.pausedURL(u)
		if why != "" && i > 0 && nameOf(u) != nameOf(p.targets[0]) {
			why = policy.HintRedirectCooldown
		}
		if left > 0 {
			held = append(held, policy.Held{Until: a.At.Add(left), Why: why})
		}
	}
	for _, h := range held {
		if h.Until.After(a.NotBefore) {
			a.NotBefore, a.Holder = h.Until, h.Why
		}
	}
}

// reached reports whether a failure without a request came after the origin had accepted
// the connection.
func reached(f policy.Failure) bool {
	return f == policy.FailureTLS || f == policy.FailureTimeout
}
