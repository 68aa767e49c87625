// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgrestest

import (
	"bytes"
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

	mu      sync.Mutex // guards what follows
	server  string
	fault   Fault
	changed chan struct{} // closed when the fault changes
	open    map[net.Conn]bool
}

// StartProxy starts a proxy for the length of a test.
func StartProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, server: server, changed: make(chan struct{}), open: make(map[net.Conn]bool)}
	go p.serve()
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
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	if f.Cut {
		for c := range p.open {
			c.Close()
		}
	}
}

// Redirect leads to another server from now on.
func (p *Proxy) Redirect(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(client)
	}
}

// keep records an open connection, or closes it if connections are cut.
func (p *Proxy) keep(c net.Conn) (server string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.Cut {
		c.Close()
		return "", false
	}
	p.open[c] = true
	return p.server, true
}

func (p *Proxy) join(client net.Conn) {
	address, ok := p.keep(client)
	if !ok {
		return
	}
	server, err := net.Dial("tcp", address)
	if err != nil {
		p.end(client)
		return
	}
	if _, ok := p.keep(server); !ok {
		p.end(client)
		return
	}
	go func() { p.pass(server, client, false); p.end(client, server) }()
	p.pass(client, server, true)
	p.end(client, server)
}

func (p *Proxy) end(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.open, c)
	}
}

// pass takes what one side sends to the other, as the fault has it.
func (p *Proxy) pass(to, from net.Conn, answers bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			f := p.hold()
			if answers && f.Mute && bytes.Contains(buf[:n], []byte("COMMIT\x00")) {
				return
			}
			broken := answers && f.Break > 0
			if broken {
				n = min(n, f.Break)
			}
			if _, err := to.Write(buf[:n]); err != nil || broken {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits as long as the fault says, and returns it.
func (p *Proxy) hold() Fault {
	for {
		p.mu.Lock()
		f, changed := p.fault, p.changed
		p.mu.Unlock()
		if !f.Hang {
			time.Sleep(f.Delay)
			return f
		}
		<-changed
	}
}
