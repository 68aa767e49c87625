// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/caddyserver/caddy/v2"
)

// memory is the network of the running simulation. Caddy has one registry of
// networks per process, so simulations run one after another.
var memory atomic.Pointer[memNet]

func init() {
	caddy.RegisterNetwork("mem", func(_ context.Context, _, host, port string, _ uint, _ net.ListenConfig) (any, error) {
		return memory.Load().listen(net.JoinHostPort(host, port)), nil
	})
}

// memNet is a network of named hosts in memory. All that blocks on it blocks on
// channels, so that a bubble's clock goes on.
type memNet struct {
	away  atomic.Bool // nobody can be reached from here
	mu    sync.Mutex  // guards hosts
	hosts map[string]*memListener
}

// listen opens an address. Listeners of one address may overlap, as Caddy's do
// during a reload: whichever accepts first has the connection.
func (n *memNet) listen(address string) net.Listener {
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

// dial connects to an address from nowhere in particular.
func (n *memNet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if n.away.Load() {
		if len(address)%2 == 0 {
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ENETUNREACH}
		}
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "server misbehaving", Name: address, IsTemporary: true}}
	}
	return n.dialFrom(ctx, network, address, netip.MustParseAddrPort("198.51.100.1:50000"))
}

func (n *memNet) dialFrom(ctx context.Context, network, address string, from netip.AddrPort) (net.Conn, error) {
	n.mu.Lock()
	l := n.hosts[address]
	n.mu.Unlock()
	if l == nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}}
	}
	client, server := net.Pipe()
	select {
	case l.conns <- &memConn{server, from}:
		return client, nil
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
	case <-l.done: // first: a closed listener takes nothing more
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
func (l *memListener) Addr() net.Addr { return memAddr(l.address) }

type memAddr string

func (a memAddr) Network() string { return "mem" }
func (a memAddr) String() string  { return string(a) }

// memConn is the server's end of a connection, with the client's address.
type memConn struct {
	net.Conn
	from netip.AddrPort
}

func (c *memConn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(c.from) }
