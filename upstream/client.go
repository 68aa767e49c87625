// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package upstream makes polls: one polite conditional GET each, with its redirects.
//
// A poll has two steps, so that callers can claim it durably in between:
// [Client.Acquire] waits for the slot of the feed's host, and the slot makes the poll.
// Each request is sent exactly once, over a connection of its own. Redirects are
// followed hop by hop under an address guard, content codings are decoded under a size
// limit, and the result is classified. The pauses that hosts ask for (RFC 9110, the
// RateLimit drafts) are obeyed.
//
// It does not decide when a feed is due (package policy does), does not read documents
// and does not retry. Pauses from before a restart come from [Client.Hold].
package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// ErrClosed is the error of polls that were not made, or were cancelled, because their
// client was closed.
var ErrClosed = errors.New("the gateway is closing")

// maxHeaderBytes is the largest header of a response: eight times that of large sites.
const maxHeaderBytes = 128 << 10

// maxSessions is how many TLS sessions are kept to be resumed: a few KiB each.
const maxSessions = 512

var (
	errSpent = errors.New("the slot has been used already")
	errNoURL = errors.New("there is no URL to poll")
)

// Settings are an operator's settings. They can change between polls.
type Settings struct {
	// UserAgent replaces the whole User-Agent. Empty: it is made of Version and Contact.
	UserAgent string
	// Version and Contact appear in the User-Agent, unless they are empty.
	Version, Contact string
	// Private are the private, loopback or otherwise reserved ranges that polls may reach.
	Private []netip.Prefix
	// Own reports whether the URL of a feed at a private address is in the configuration,
	// so that polls may reach it. Nil: none is.
	Own func(u feedurl.URL) bool
	// Hosts are the exceptions to the default pacing.
	Hosts []HostRule
}

// HostRule paces the hosts that its pattern matches (see [feedurl.ParsePattern]). If several
// rules match, each field comes from the most specific rule that sets it.
type HostRule struct {
	Pattern string
	// Spacing is the gap between the starts of two polls. Zero: not set by this rule;
	// negative: no gap. Default: 2 s.
	Spacing time.Duration
	// Concurrency is how many polls may be in flight. Zero: not set by this rule.
	// Default: 1.
	Concurrency int
}

// Client makes polls. Its methods may be called concurrently.
type Client struct {
	rounds    http.RoundTripper // makes the requests; nil: transport does
	transport *http.Transport   // opens the connections
	dial      dialFunc          // replaces the guarded dialer; nil: it does not
	settings  atomic.Pointer[Settings]
	now       func() time.Time
	pacer     *pacer

	closing context.Context
	close   context.CancelCauseFunc
	mu      sync.Mutex
	closed  bool
	polls   sync.WaitGroup
}

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// Option changes how a client reaches its origins.
type Option func(*Client)

// WithTransport replaces the network by a round tripper: in a shield, by the rest of the
// route. The address guard does not apply, because nothing is dialled. The round tripper
// must send each request at most once.
func WithTransport(rounds http.RoundTripper) Option {
	return func(c *Client) { c.rounds = rounds }
}

// WithoutPacing disables pacing and pauses. It is for the operator's own site, whose feeds
// need not wait for each other.
func WithoutPacing() Option {
	return func(c *Client) { c.pacer.off = true }
}

// WithDial makes connections by a function. The address guard does not apply: the function
// decides which addresses may be reached.
func WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *Client) { c.dial = dial }
}

// WithClock replaces the system's clock. The function now must return monotonic readings,
// and suspended how long the machine has been suspended since any fixed time: gaps and
// pauses go on in that time.
func WithClock(now func() time.Time, suspended func() time.Duration) Option {
	return func(c *Client) { c.now, c.pacer.clock = now, newClock(now, suspended) }
}

// WithTLS sets how TLS connections are made, for example which authorities are
// trusted.
func WithTLS(config *tls.Config) Option {
	return func(c *Client) { c.transport.TLSClientConfig = config.Clone() }
}

// New returns a client with default pacing and without a contact.
func New(options ...Option) *Client {
	c := &Client{pacer: newPacer(), now: time.Now}
	c.transport = &http.Transport{
		Proxy:                  nil, // a proxy from the environment would bypass the guard
		DialContext:            c.dialGuarded,
		DisableCompression:     true, // decoding under a cap is done here
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	c.closing, c.close = context.WithCancelCause(context.Background())
	c.settings.Store(&Settings{})
	for _, option := range options {
		option(c)
	}
	if c.transport.TLSClientConfig == nil {
		c.transport.TLSClientConfig = new(tls.Config)
	}
	// A connection for each poll: at least the handshake can be the short one (RFC 8446
	// section 2.2).
	c.transport.TLSClientConfig.ClientSessionCache = tls.NewLRUClientSessionCache(maxSessions)
	return c
}

// Apply changes the settings for all polls that start from now on.
func (c *Client) Apply(s Settings) {
	s.UserAgent, s.Version, s.Contact = fieldText(s.UserAgent), fieldText(s.Version), fieldText(s.Contact)
	s.Private = slices.Clone(s.Private)
	c.settings.Store(&s)
	c.pacer.apply(s.Hosts)
}

// fieldText removes characters that header fields must not contain: each request would
// fail.
func fieldText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || !httpguts.ValidHeaderFieldValue(string(r)) {
			return -1
		}
		return r
	}, s))
}

// Acquire waits for the slot of the URL's host until ctx ends. Polls start in the order of
// their calls, but urgent ones, which a reader waits for, start first. It fails with a
// [policy.Held] as soon as the wait is known to be longer than ctx allows, or than 15 s
// without a deadline, or if the host is in a pause with more than 15 s left.
func (c *Client) Acquire(ctx context.Context, u feedurl.URL, urgent bool) (policy.Slot, error) {
	if u == (feedurl.URL{}) {
		return nil, errNoURL
	}
	if c.guardOf(u, false).checkHost(u) != nil {
		return &pollSlot{client: c, url: u, slot: new(slot)}, nil // the poll says why it is not made
	}
	class := classOther
	if urgent {
		class = classUrgent
	}
	ctx, stop := c.untilClosed(ctx)
	defer stop()
	s, err := c.pacer.acquire(ctx, u, class)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.HostPort(), err)
	}
	return &pollSlot{client: c, url: u, slot: s}, nil
}

// pollSlot is the [policy.Slot] of a URL.
type pollSlot struct {
	client *Client
	url    feedurl.URL
	slot   *slot
	spent  atomic.Bool
}

func (s *pollSlot) Release() {
	if !s.spent.Swap(true) {
		s.slot.cancel()
	}
}

func (s *pollSlot) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	c := s.client
	if s.spent.Swap(true) {
		return policy.Answer{At: c.now(), URL: ask.URL.String(), Failure: policy.FailureInternal, Err: errSpent}
	}
	if !c.enter() {
		s.slot.cancel()
		return policy.Answer{At: c.now(), URL: ask.URL.String(), Failure: policy.FailureNotStarted, Err: ErrClosed}
	}
	defer c.polls.Done()
	ctx, stop := c.untilClosed(ctx)
	defer stop()
	return newPoll(c, s.url, ask).run(ctx, s.slot)
}

// Poll waits for the slot of the URL's host and makes one poll.
func (c *Client) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	s, err := c.Acquire(ctx, ask.URL, true)
	if err != nil {
		a := policy.Answer{At: c.now(), URL: ask.URL.String(), Failure: policy.FailureNotStarted, Err: err}
		if held, ok := errors.AsType[*policy.Held](err); ok {
			a.NotBefore, a.Holder = held.Until, held.Why
		}
		return a
	}
	return s.Poll(ctx, ask)
}

// untilClosed returns a context that also ends when the client is closed.
func (c *Client) untilClosed(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.closing, func() { cancel(ErrClosed) })
	return ctx, func() { unhook(); cancel(nil) }
}

// enter counts a poll, unless the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.polls.Add(1)
	return true
}

// Host returns the host of a URL, or the zero Host if it is not paced.
func (c *Client) Host(u feedurl.URL) policy.Host { return c.pacer.whom(u) }

// Held returns the pause of the URL's host, or nil.
func (c *Client) Held(u feedurl.URL) *policy.Held {
	if left, why := c.pacer.pausedURL(u); left > 0 {
		return &policy.Held{Until: c.now().Add(left), Why: why}
	}
	return nil
}

// Busy returns the names ([policy.Host]) of hosts with polls in flight or waiting.
func (c *Client) Busy() []string { return c.pacer.busyHosts() }

// Hold restores pauses from before a restart or from another node. It never shortens one.
func (c *Client) Hold(pauses []policy.Pause) { c.pacer.hold(pauses) }

// Close cancels all polls and waits for them to return.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.pacer.stop() // first: slots that are given back must not let others start
	c.close(ErrClosed)
	c.polls.Wait()
	c.transport.CloseIdleConnections()
}
