// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgrestest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// Fault is what a proxy does to the way between a program and its server.
type Fault struct {
	Delay time.Duration // of what is sent, in each direction
	Cut   bool          // connections are closed, and none are made
	Hang  bool          // nothing goes through, and connections stay open
	// Break closes a connection after so many bytes of the server's next answer, which
	// may be in the middle of a row. 0: it does not.
	Break int
	// Mute closes a connection instead of passing the answer that a transaction was
	// committed.
	Mute bool
}

// Proxy is the way to a server.
type Proxy struct {
	listener net.Listener

	mu     sync.Mutex // guards what follows
	server string
	fault  Fault
	alive  context.Context // of connections; ends when they are cut
	cut    context.CancelFunc
}

// StartProxy starts a proxy for the length of a test.
func StartProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &Proxy{listener: l, server: server}
	p.alive, p.cut = context.WithCancel(context.Background())
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.join(client)
		}
	}()
	t.Cleanup(func() {
		l.Close()
		p.Set(Fault{Cut: true})
	})
	return p
}

// Address is the address that the proxy listens on.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Set changes what happens from now on.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault = f; f.Cut {
		p.cut()
		p.alive, p.cut = context.WithCancel(context.Background())
	}
}

// Redirect leads to another server from now on.
func (p *Proxy) Redirect(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

func (p *Proxy) now() (server string, fault Fault, alive context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.server, p.fault, p.alive
}

// join connects a client with the server.
func (p *Proxy) join(client net.Conn) {
	defer client.Close()
	address, fault, alive := p.now()
	if fault.Cut {
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	end := func() { client.Close(); server.Close() }
	defer context.AfterFunc(alive, end)()
	go func() { defer end(); p.pass(server, client, false) }()
	p.pass(client, server, true)
}

// pass takes what one side sends to the other, as the fault has it.
func (p *Proxy) pass(to, from net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		_, f, _ := p.now()
		for ; f.Hang; _, f, _ = p.now() {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(f.Delay)
		if answers && f.Mute && bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
			return
		}
		broken := answers && f.Break > 0
		if broken {
			n = min(n, f.Break)
		}
		if _, failed := to.Write(buf[:n]); failed != nil || broken || err != nil {
			return
		}
	}
}
