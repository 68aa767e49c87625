// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"net"
	"sync"
	"testing"
	"time"
)

// fault is what a proxy does to the way between a node and the database.
type fault struct {
	delay time.Duration // of what is sent, in each direction
	cut   bool          // connections are closed, and none are made
	hang  bool          // nothing goes through, and nobody is told
}

// proxy is the way of one node to the database.
type proxy struct {
	listener net.Listener
	server   string

	mu      sync.Mutex // guards what follows
	fault   fault
	changed chan struct{} // closed when the fault changes
	open    map[net.Conn]bool
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, server: server, changed: make(chan struct{}), open: make(map[net.Conn]bool)}
	go p.serve()
	t.Cleanup(func() {
		l.Close()
		p.set(fault{cut: true})
	})
	return p
}

// set changes what happens from now on.
func (p *proxy) set(f fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	if f.cut {
		for c := range p.open {
			c.Close()
		}
	}
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.join(client)
	}
}

// keep notes an open connection, or closes it where there is none to be.
func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.cut {
		c.Close()
		return false
	}
	p.open[c] = true
	return true
}

func (p *proxy) join(client net.Conn) {
	if !p.keep(client) {
		return
	}
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		p.end(client)
		return
	}
	if !p.keep(server) {
		p.end(client)
		return
	}
	go func() { p.pass(server, client); p.end(client, server) }()
	p.pass(client, server)
	p.end(client, server)
}

func (p *proxy) end(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		c.Close()
		delete(p.open, c)
	}
}

// pass takes what one side sends to the other, as the fault has it.
func (p *proxy) pass(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p.hold()
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// hold waits as long as the fault says.
func (p *proxy) hold() {
	for {
		p.mu.Lock()
		f, changed := p.fault, p.changed
		p.mu.Unlock()
		if !f.hang {
			time.Sleep(f.delay)
			return
		}
		<-changed
	}
}
