// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
)

// Proxy is an HTTP proxy (CONNECT and absolute URLs) and a SOCKS5 proxy (RFC 1928) on one
// port. It connects to the same address, whatever host a client asks for. Its fields are set
// before Start.
type Proxy struct {
	To   string        // host:port that it connects to; empty: it cannot reach anything
	User *url.Userinfo // that clients must send; nil: none
	TLS  *tls.Config   // of its connections with clients; nil: they are not encrypted
	// Refuse are the statuses for hosts that it does not connect to. A SOCKS proxy has no statuses.
	Refuse map[string]int

	mu    sync.Mutex // guards asked
	asked []ProxyRequest
}

// Start serves the proxy at an address of this machine, which it returns, until the end of
// the test.
func (p *Proxy) Start(t testing.TB) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	if p.TLS != nil {
		listener = tls.NewListener(listener, p.TLS)
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(conn)
		}
	}()
	return listener.Addr().String()
}

// ProxyRequest is a request that a proxy received.
type ProxyRequest struct {
	Line   string      // "CONNECT host:port", "GET url" or "SOCKS host:port"
	Header http.Header // nil for SOCKS
}

// Asked returns the requests so far.
func (p *Proxy) Asked() []ProxyRequest {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.asked)
}

func (p *Proxy) record(header http.Header, format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, ProxyRequest{fmt.Sprintf(format, args...), header})
}

func (p *Proxy) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	if first, err := in.Peek(1); err != nil {
		return
	} else if first[0] == 5 {
		p.serveSOCKS(conn, in)
		return
	}
	r, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	if r.Method == http.MethodConnect {
		p.record(r.Header, "CONNECT %s", r.Host)
	} else {
		p.record(r.Header, "%s %s", r.Method, r.URL)
	}
	if p.User != nil {
		user, password, _ := (&http.Request{Header: http.Header{"Authorization": r.Header["Proxy-Authorization"]}}).BasicAuth()
		if want, _ := p.User.Password(); user != p.User.Username() || password != want {
			io.WriteString(conn, "HTTP/1.1 407 No\r\nRetry-After: 9000\r\nContent-Length: 0\r\n\r\n")
			return
		}
	}
	if status := p.Refuse[r.URL.Hostname()]; status != 0 {
		fmt.Fprintf(conn, "HTTP/1.1 %d No\r\nX-Squid-Error: ERR 0\r\nRetry-After: 9000\r\nContent-Length: 0\r\n\r\n", status)
		return
	}
	to, err := net.Dial("tcp", p.To)
	if err != nil {
		io.WriteString(conn, "HTTP/1.1 502 No\r\nProxy-Status: test; error=destination_unavailable\r\nRetry-After: 9000\r\nContent-Length: 0\r\n\r\n")
		return
	}
	if r.Method == http.MethodConnect {
		io.WriteString(conn, "HTTP/1.1 200 Connected\r\n\r\n")
	} else {
		r.Header.Del("Proxy-Authorization")
		_ = r.Write(to)
	}
	join(conn, in, to)
}

// serveSOCKS is RFC 1928, and RFC 1929 if clients must send a user.
func (p *Proxy) serveSOCKS(conn net.Conn, in *bufio.Reader) {
	read := func(n byte) []byte {
		b := make([]byte, n)
		_, _ = io.ReadFull(in, b)
		return b
	}
	methods := read(read(2)[1])
	switch {
	case p.User == nil:
		_, _ = conn.Write([]byte{5, 0})
	case slices.Contains(methods, 2):
		_, _ = conn.Write([]byte{5, 2})
		user := string(read(read(2)[1]))
		password, want := string(read(read(1)[0])), ""
		if want, _ = p.User.Password(); user != p.User.Username() || password != want {
			_, _ = conn.Write([]byte{1, 1})
			return
		}
		_, _ = conn.Write([]byte{1, 0})
	default:
		_, _ = conn.Write([]byte{5, 0xff})
		return
	}
	var host string
	switch kind := read(4)[3]; kind {
	case 1:
		host = net.IP(read(4)).String()
	case 3:
		host = string(read(read(1)[0]))
	case 4:
		host = net.IP(read(16)).String()
	}
	port := binary.BigEndian.Uint16(read(2))
	p.record(nil, "SOCKS %s", net.JoinHostPort(host, fmt.Sprint(port)))
	address := p.To
	if p.Refuse[host] != 0 {
		address = ""
	}
	to, err := net.Dial("tcp", address)
	if err != nil {
		_, _ = conn.Write([]byte{5, 4, 0, 1, 0, 0, 0, 0, 0, 0}) // host unreachable
		return
	}
	_, _ = conn.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
	join(conn, in, to)
}

// join copies between a client and an origin until one of them closes its connection.
func join(client net.Conn, in io.Reader, origin net.Conn) {
	defer origin.Close()
	go func() { _, _ = io.Copy(origin, in); origin.Close() }()
	_, _ = io.Copy(client, origin)
}
