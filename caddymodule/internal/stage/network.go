// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/caddyserver/caddy/v2"
)

// network is the one that a Caddyfile's `bind mem/<host>` means. Caddy has one registry of
// networks for the process, so tests that use one do not run in parallel.
var network atomic.Pointer[Network]

func init() {
	caddy.RegisterNetwork("mem", func(_ context.Context, _, host, port string, _ uint, _ net.ListenConfig) (any, error) {
		return network.Load().Listen(net.JoinHostPort(host, port)), nil
	})
}

// Network is a network of named hosts in memory. A goroutine that waits for it waits for a
// channel, so the clock of a synctest bubble goes on, as it would not with sockets.
type Network struct {
	mu    sync.Mutex // guards hosts
	hosts map[string]*memListener
}

// Use has Caddy listen on this network wherever a Caddyfile says `bind mem/<host>`.
func (n *Network) Use() { network.Store(n) }

// Listen opens an address. Listeners of one address may overlap, as Caddy's do during a
// reload: the one that accepts first gets the connection.
func (n *Network) Listen(address string) net.Listener {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.hosts == nil {
		n.hosts = make(map[string]*memListener)
	}
	l := &memListener{address: address, conns: make(chan net.Conn), done: make(chan struct{})}
	if before, ok := n.hosts[address]; ok {
		l.conns = before.conns
	}
	n.hosts[address] = l
	return l
}

// Dial connects to an address.
func (n *Network) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return n.DialFrom(ctx, network, address, netip.MustParseAddrPort("198.51.100.1:50000"))
}

// DialFrom connects to an address. The server sees the connection come from a client.
func (n *Network) DialFrom(ctx context.Context, network, address string, client netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	l := n.hosts[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}}
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- &memConn{theirs, client}:
		return ours, nil
	case <-l.done:
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// memListener implements [net.Listener].
type memListener struct {
	address string
	conns   chan net.Conn
	done    chan struct{}
	once    sync.Once
}

func (l *memListener) Accept() (net.Conn, error) {
	select {
	case <-l.done: // first: a closed listener accepts nothing more
		return nil, net.ErrClosed
	default:
	}
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *memListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *memListener) Addr() net.Addr { return &net.UnixAddr{Net: "mem", Name: l.address} }

// memConn is the server's end of a connection, with the client's address.
type memConn struct {
	net.Conn
	client netip.AddrPort
}

func (c *memConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.client) }
