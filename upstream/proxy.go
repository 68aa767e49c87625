// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// ParseProxy parses the URL of a proxy for a [HostRule], or "off" for none. Its errors do
// not quote the text, which may have a password.
func ParseProxy(text string) (*url.URL, error) {
	const expected = "expected http, https, socks5 or socks5h and a host, as in socks5h://127.0.0.1:9050, or off"
	if text == "off" {
		return new(url.URL), nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("it is not the URL of a proxy: " + expected)
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, fmt.Errorf("a proxy cannot have the scheme %q: %s", u.Scheme, expected)
	}
	if u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of a proxy has a host, maybe a port, a user and a password, and nothing else: " + expected)
	}
	return u, nil
}

// proxyOf returns the proxy for requests to a host, nil if there is none, and whether its
// rule names the host or a domain that it belongs to.
func (h *hosts) proxyOf(name string) (proxy *url.URL, named bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, r := range h.rules.Covering(name) {
		if r.Proxy != nil {
			proxy, named = r.Proxy, r.Pattern != "*"
		}
	}
	if proxy == nil || proxy.Host == "" {
		return nil, false
	}
	return proxy, named
}

// lookupPublic looks a name up. RFC 7686 section 2: the names of onion services are not for
// the DNS.
func lookupPublic(ctx context.Context, name string) ([]netip.Addr, error) {
	if strings.HasSuffix(name, ".onion") {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name)
}

// proxyStatus is the status of a proxy's own response.
type proxyStatus int

func (s proxyStatus) Error() string {
	return fmt.Sprintf("status %d %s", int(s), http.StatusText(int(s)))
}

// proxyError says that nothing came through a proxy.
type proxyError struct {
	away bool // it is the proxy that failed, and not the connection from there
	err  error
}

func (e *proxyError) Error() string { return "proxy: " + e.err.Error() }
func (e *proxyError) Unwrap() error { return e.err }

// failure is [failureOf] for the errors of a proxy.
func (e *proxyError) failure() (policy.Failure, error) {
	if e.away {
		return policy.FailureProxy, plain("the proxy failed"+reason(e.err), e.err)
	}
	text := reason(e.err)
	if isTimeout(e.err) {
		text = ": no answer in time"
	}
	return policy.FailureConnect, plain("the proxy could not connect"+text, e.err)
}

// guardedProxy returns the proxy of a hop for the transport. One behind TLS is an HTTP proxy to
// which [Client.dialProxy] connects: the transport would offer it HTTP/2, and then speak HTTP/1.1.
func guardedProxy(r *http.Request) (*url.URL, error) {
	g := r.Context().Value(guardKey{}).(*guard)
	if g.proxy == nil || g.proxy.Scheme != "https" {
		return g.proxy, nil
	}
	plain := *g.proxy
	plain.Scheme, plain.Host = "http", net.JoinHostPort(plain.Hostname(), cmp.Or(plain.Port(), "443"))
	return &plain, nil
}

// dialProxy connects to a proxy. The operator names it, so it may be at any address.
func (c *Client) dialProxy(ctx context.Context, proxy *url.URL, network, address string) (net.Conn, error) {
	dial := c.dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil || proxy.Scheme != "https" {
		return conn, err
	}
	config := c.transport.TLSClientConfig.Clone()
	config.NextProtos, config.ServerName = nil, proxy.Hostname()
	secured := tls.Client(conn, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secured, nil
}

// connect opens the connection, through the proxy of the request if it has one. A proxy that connects to the
// origin gets the address that was checked, as it might look up another one for the name; the next address only
// if it cannot reach the one before. It gets the name if nothing is known here but that, if its scheme asks for
// names, if it sends the request itself, or if it forbids the address of a host that the operator has named.
func (x *exchange) connect(ctx context.Context, t feedurl.URL) (conn *http.ClientConn, err error) {
	c, g := x.client, x.guard
	if g.proxy == nil {
		return c.transport.NewClientConn(ctx, t.Scheme(), t.Address())
	}
	byName := g.proxy.Scheme == "socks5h" || g.proxy.Scheme != "socks5" && t.Scheme() == "http" || len(g.addresses) == 0
	if !byName {
		transport := c.transport.Clone()
		transport.TLSClientConfig.ServerName = t.Name()
		for _, a := range g.addresses {
			conn, err = transport.NewClientConn(ctx, t.Scheme(), net.JoinHostPort(a.Unmap().String(), t.Port()))
			err = x.proxyFailure(ctx, err)
			if failed, ok := errors.AsType[*proxyError](err); !ok || failed.away || ctx.Err() != nil {
				return conn, err
			}
		}
		status, _ := errors.AsType[proxyStatus](err)
		byName = status == http.StatusForbidden && g.named // it may allow sites by their names
	}
	if byName {
		conn, err = c.transport.NewClientConn(ctx, t.Scheme(), t.Address())
		err = x.proxyFailure(ctx, err)
	}
	return conn, err
}

// proxyConnected is called with the response to CONNECT.
func proxyConnected(ctx context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode == http.StatusOK {
		ctx.Value(guardKey{}).(*guard).tunnel = true
		return nil
	}
	return proxyStatus(resp.StatusCode)
}

// proxyFailure returns the error of connecting through a proxy as a [proxyError], unless the TLS
// handshake with the origin failed or the poll was cancelled.
func (x *exchange) proxyFailure(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || phase(x.phase.Load()) == phaseHandshake || cause != nil && cause != errTimeout {
		return err
	}
	operation, ok := errors.AsType[*net.OpError](err)
	status, _ := errors.AsType[proxyStatus](err)
	away := ok && operation.Op == "proxyconnect" || status == http.StatusProxyAuthRequired
	return &proxyError{away, err}
}

// proxyResponse returns an error if a response is that of the proxy and not of the origin.
// They can be told apart only by what proxies add: RFC 9209 section 2.1.1, and Squid's field.
func proxyResponse(resp *http.Response) error {
	failed := resp.Header.Get("X-Squid-Error") != "" || strings.Contains(resp.Header.Get("Proxy-Status"), "error=")
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		return &proxyError{true, proxyStatus(resp.StatusCode)}
	case resp.StatusCode >= http.StatusBadRequest && failed:
		return &proxyError{false, proxyStatus(resp.StatusCode)}
	}
	return nil
}
