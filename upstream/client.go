// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package upstream makes polls: one polite conditional GET each, with its redirects.
//
// A poll has two halves, and whoever asks claims it durably in between:
// [Client.Acquire] waits for the slot of the feed's host, and the slot makes the
// poll. Every request is sent exactly once over a connection of its own; redirects
// are followed hop by hop under an address guard; content codings are undone under a
// size cap; what came of it is classified. The pauses that hosts ask for (RFC 9110,
// the RateLimit drafts) are kept.
//
// It does not decide when a feed is due (package policy does), does not read
// documents, retries nothing and remembers nothing over a restart but what it is
// told by [Client.Hold].
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

// ErrClosed is the reason of polls that were not made, or broke off, because
// their client was closed.
var ErrClosed = errors.New("the gateway is closing")

// maxHeaderBytes is the most that an origin's header may take: eight times what
// large sites send.
const maxHeaderBytes = 128 << 10

// maxSessions is how many TLS sessions are kept to be resumed: a few KiB each.
const maxSessions = 512

var (
	errSpent = errors.New("the slot has been used already")
	errNoURL = errors.New("there is no URL to poll")
)

// Settings are what an operator may choose. They can change between polls.
type Settings struct {
	// UserAgent replaces the whole User-Agent. Empty: it is made of the next two.
	UserAgent string
	// Version and Contact appear in the User-Agent. What is empty is left out.
	Version, Contact string
	// Private are the private, loopback or otherwise reserved ranges that polls may reach.
	Private []netip.Prefix
	// Own reports whether the operator has written down the URL of a feed at a private
	// address: polls may reach it. Nil: none.
	Own func(u feedurl.URL) bool
	// Hosts are the exceptions to the default pacing.
	Hosts []HostRule
}

// HostRule paces the hosts that its pattern matches (see [feedurl.ParsePattern]). Of several
// matching rules each line is taken from the most specific one that has it.
type HostRule struct {
	Pattern string
	// Spacing is the gap between the starts of two polls. 0: not said here;
	// negative: none. Default: 2 s.
	Spacing time.Duration
	// Concurrency is how many polls may be in flight. 0: not said here. Default: 1.
	Concurrency int
}

// Client makes polls. Its methods may be called concurrently.
type Client struct {
	rounds    http.RoundTripper // makes the exchanges where one was given
	transport *http.Transport   // opens the connections otherwise
	dial      dialFunc          // connects in place of a guarded dialer; nil: none was given
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

// WithTransport lets a round tripper answer in place of the network: in a shield
// it is the rest of the route. As nothing is dialled, the address guard has no
// part in it. It must send each request at most once.
func WithTransport(rounds http.RoundTripper) Option {
	return func(c *Client) { c.rounds = rounds }
}

// WithoutPacing lets polls start at once, whatever other polls of their host have
// met with: for a site of one's own, whose feeds need not wait for each other.
func WithoutPacing() Option {
	return func(c *Client) { c.pacer.off = true }
}

// WithDial lets a function make the connections. The address guard has no part
// in it: which addresses may be reached is then the function's business.
func WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(c *Client) { c.dial = dial }
}

// WithClock has a client read another clock than the system's, with a monotonic
// reading as that has, and tells it for how long the machine has been suspended since
// some moment: gaps and pauses go on meanwhile.
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
		Proxy:                  nil, // an environment's proxy would see what only the origin may, past the guard
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

// Apply makes settings take effect for all polls that start from now on.
func (c *Client) Apply(s Settings) {
	s.UserAgent, s.Version, s.Contact = fieldText(s.UserAgent), fieldText(s.Version), fieldText(s.Contact)
	s.Private = slices.Clone(s.Private)
	c.settings.Store(&s)
	c.pacer.apply(s.Hosts)
}

// fieldText drops what no header field may contain: it would make every request fail.
func fieldText(s string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || !httpguts.ValidHeaderFieldValue(string(r)) {
			return -1
		}
		return r
	}, s))
}

// Acquire waits for the right to ask the URL's host once, until ctx ends: behind the
// polls that came before, but urgent ones, which a reader waits for, before all
// others. It fails with a [policy.Held] as soon as it is known that this would take
// longer than ctx allows, or 15 s where it has no deadline, and where the host has
// asked for a pause that is longer than 15 s.
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

// Poll waits for the slot of the URL's host and makes one poll, which needs no claim.
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

// enter counts a poll in, unless the client is closed.
func (c *Client) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.polls.Add(1)
	return true
}

// Host is whom a poll of a URL asks: the zero Host where nothing is paced, or where
// there is nobody to ask.
func (c *Client) Host(u feedurl.URL) policy.Host { return c.pacer.whom(u) }

// Held is the pause that the URL's host has asked for, nil where there is none.
func (c *Client) Held(u feedurl.URL) *policy.Held {
	if left, why := c.pacer.pausedURL(u); left > 0 {
		return &policy.Held{Until: c.now().Add(left), Why: why}
	}
	return nil
}

// Busy lists the hosts, as [policy.Host] names them, with polls under way or waiting.
func (c *Client) Busy() []string { return c.pacer.busyHosts() }

// Hold takes over pauses that hosts have asked for before a restart, or of another
// node. It ends none.
func (c *Client) Hold(pauses []policy.Pause) { c.pacer.hold(pauses) }

// Close breaks off all polls and waits for them to return.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.pacer.stop() // first: slots that are given back must not let others start
	c.close(ErrClosed)
	c.polls.Wait()
	c.transport.CloseIdleConnections()
}
