// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package upstream makes polls: one polite conditional GET each, with its redirects.
//
// A [Client] waits for the host's slot, sends every request exactly once over a
// connection of its own, follows redirects hop by hop under an address guard,
// undoes content codings under a size cap, and classifies what came of it. It
// keeps the pauses that hosts ask for (RFC 9110, RFC 9111, the RateLimit drafts).
//
// It does not decide when a feed is due (package policy does), does not read
// documents, retries nothing and remembers nothing over a restart but what it is
// told by [Client.Hold].
package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// ErrClosed is the reason of polls that were not made, or broke off, because
// their client was closed.
var ErrClosed = errors.New("the gateway is closing")

// maxHeaderBytes is the most that an origin's header may take: eight times what
// large sites send.
const maxHeaderBytes = 128 << 10

// Settings are what an operator may choose. They can change between polls.
type Settings struct {
	// UserAgent replaces the whole User-Agent. Empty: it is made of the next two.
	UserAgent string
	// Version and Contact appear in the User-Agent. What is empty is left out.
	Version, Contact string
	// Private are the private, loopback or otherwise reserved ranges that polls may reach.
	Private []netip.Prefix
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

// WithTLS sets how TLS connections are made, for example which authorities are
// trusted. The configuration must not be changed afterwards.
func WithTLS(config *tls.Config) Option {
	return func(c *Client) { c.transport.TLSClientConfig = config }
}

// New returns a client with default pacing and without a contact.
func New(options ...Option) *Client {
	c := &Client{pacer: newPacer()}
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

// Poll makes one poll. It always returns an answer: Failure and Err tell what
// went wrong, NotBefore and Holder when the hosts concerned may be asked again.
func (c *Client) Poll(ctx context.Context, ask policy.Ask) policy.Answer {
	if !c.enter() {
		return policy.Answer{At: time.Now(), URL: ask.URL, Failure: policy.FailureNotStarted, Err: ErrClosed}
	}
	defer c.polls.Done()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.closing, func() { cancel(ErrClosed) })()
	return newPoll(c, ask).run(ctx)
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

// Ready tells the earliest moment at which a poll of this URL could start, and
// what holds it until then: one of the Held constants. A zero time means at once.
func (c *Client) Ready(url string) (at time.Time, why string) {
	t, err := feedurl.Parse(url)
	if err != nil {
		return time.Time{}, ""
	}
	return c.pacer.ready(t, time.Now())
}

// Hold restores a cool-down that was agreed before a restart: until and why are
// the NotBefore and Holder of an answer to this URL.
func (c *Client) Hold(url string, until time.Time, why string) {
	if t, err := feedurl.Parse(url); err == nil {
		c.pacer.hold(t, until, why)
	}
}

// Close breaks off all polls and waits for them to return.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.pacer.stop() // first: the slots that are given back must not let others start
	c.close(ErrClosed)
	c.polls.Wait()
	c.transport.CloseIdleConnections()
}
