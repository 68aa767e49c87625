// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package upstream makes polls: one polite conditional GET each, with its redirects.
//
// A poll has two steps, so that callers can claim it durably in between:
// [Client.Acquire] gives a slot, unless the feed's host has as many requests in flight as it may, and
// the slot makes the poll. Each request is sent exactly once, over a connection of its own.
// Redirects are followed hop by hop under an address guard, content codings are decoded
// under a size limit, and the result is classified. The pauses that hosts ask for (RFC
// 9110, the RateLimit drafts) are in the answer.
//
// It does not decide when a feed is due (package policy does) or when a host may be polled
// (package store does), does not read documents and does not retry.
package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
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
	// Chosen reports whether the configuration names a feed with the scheme, name and port of a
	// URL, so that polls may reach them at a public address of this machine or its network. Nil:
	// it names none.
	Chosen func(u feedurl.URL) bool
	// Hosts are the exceptions to the default pacing.
	Hosts []HostRule
}

// HostRule says how to reach the hosts that its pattern matches (see [feedurl.ParsePattern]). If several
// rules match, each field comes from the most specific rule that sets it.
type HostRule struct {
	Pattern string
	// Spacing is the gap between the starts of two polls. Zero: not set by this rule;
	// negative: no gap. Default: 2 s.
	Spacing time.Duration
	// Concurrency is how many polls may be in flight. Zero: not set by this rule.
	// Default: 1.
	Concurrency int
	// Proxy is the proxy for the requests (see [ParseProxy]). Nil: not set by this rule;
	// without a host: none. Default: none.
	Proxy *url.URL
}

// Client makes polls. Its methods may be called concurrently.
type Client struct {
	rounds    http.RoundTripper // makes the requests; nil: transport does
	transport *http.Transport   // opens the connections
	dial      dialFunc          // replaces the guarded dialer; nil: it does not
	settings  atomic.Pointer[Settings]
	now       func() time.Time
	lookup    func(ctx context.Context, name string) ([]netip.Addr, error)
	hosts     hosts
	machine   machine
	reach     dialFunc // replaces the network below the guard; nil: it does not
	noPacing  bool     // set before the first use
	decoding  sync.Mutex

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

// WithoutPacing disables pacing and the pauses of hosts. It is for the operator's own site, whose feeds
// need not wait for each other.
func WithoutPacing() Option {
	return func(c *Client) { c.noPacing = true }
}

// WithDial makes connections by a function. The address guard does not apply: the function
// decides which addresses may be reached.
func WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *Client) { c.dial = dial }
}

// WithClock replaces the system's clock. The function must return monotonic readings.
func WithClock(now func() time.Time) Option {
	return func(c *Client) { c.now = now }
}

// WithTLS sets how TLS connections are made, for example which authorities are
// trusted.
func WithTLS(config *tls.Config) Option {
	return func(c *Client) { c.transport.TLSClientConfig = config.Clone() }
}

// New returns a client with default pacing and without a contact.
func New(options ...Option) *Client {
	c := &Client{now: time.Now, lookup: lookupPublic}
	c.hosts.byName, c.hosts.sites = make(map[string]*host), make(map[string]*site)
	c.transport = &http.Transport{
		Proxy:                  guardedProxy, // not one of the environment, which would bypass the guard
		OnProxyConnectResponse: proxyConnected,
		ProxyConnectHeader:     http.Header{"User-Agent": {""}}, // Go's own is left out
		DialContext:            c.dialGuarded,
		DisableCompression:     true, // decoding under a cap is done here
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
	c.machine.interfaces, c.machine.now = net.InterfaceAddrs, func() time.Time { return c.now() }
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
	c.hosts.apply(s.Hosts, c.now())
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

// Acquire returns the right to have another request to the URL's host in flight; nil if the host or its site has as
// many as it may.
func (c *Client) Acquire(u feedurl.URL) policy.Slot {
	if c.noPacing {
		return &slot{client: c, url: u}
	}
	to := c.hosts.tryEnter(u, c.now())
	if to == nil {
		return nil
	}
	return &slot{client: c, url: u, host: to}
}

// enter is [hosts.enter]. It returns nil if nothing is paced.
func (c *Client) enter(ctx context.Context, u feedurl.URL) (*host, error) {
	if c.noPacing {
		return nil, nil
	}
	return c.hosts.enter(ctx, u, c.now())
}

// slot is the [policy.Slot] of a URL.
type slot struct {
	client *Client
	url    feedurl.URL
	host   *host
}

func (s *slot) Release() {
	s.client.hosts.leave(s.host)
	s.host = nil
}

func (s *slot) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	c := s.client
	if !c.begin() {
		return policy.Answer{At: c.now(), URL: ask.URL.String(), Failure: policy.FailureNotStarted, Err: ErrClosed}
	}
	defer c.polls.Done()
	ctx, stop := c.untilClosed(ctx)
	defer stop()
	ask.URL = s.url
	p := newPoll(c, ask)
	p.host = s.host
	defer func() { s.host = p.host }() // that of the last request
	return p.run(ctx)
}

// Poll makes one poll, when the URL's host may have another request in flight.
func (c *Client) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	to, err := c.await(ctx, ask.URL)
	if err != nil {
		return policy.Answer{At: c.now(), URL: ask.URL.String(), Failure: policy.FailureNotStarted, Err: err}
	}
	s := &slot{client: c, url: ask.URL, host: to}
	defer s.Release()
	return s.Poll(ctx, ask)
}

// await waits until the URL's host may have another request in flight, or ctx ends.
func (c *Client) await(ctx context.Context, u feedurl.URL) (*host, error) {
	ctx, stop := c.untilClosed(ctx)
	defer stop()
	to, err := c.enter(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", u.HostPort(), err)
	}
	return to, nil
}

// untilClosed returns a context that also ends when the client is closed.
func (c *Client) untilClosed(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(c.closing, func() { cancel(ErrClosed) })
	return ctx, func() { unhook(); cancel(nil) }
}

// begin counts a poll, unless the client is closed.
func (c *Client) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.polls.Add(1)
	return true
}

// Host returns the host of a URL, or the zero Host if it is not paced.
func (c *Client) Host(u feedurl.URL) policy.Host {
	if c.noPacing {
		return policy.Host{}
	}
	return c.hosts.hostOf(u)
}

// Close cancels all polls and waits for them to return.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.close(ErrClosed)
	c.polls.Wait()
	c.transport.CloseIdleConnections()
}
