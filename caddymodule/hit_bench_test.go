// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	_ "github.com/feedpollard/pollard/caddymodule"
)

// BenchmarkHit is what a hit costs in all of Caddy but the kernel, beside Caddy's own
// respond with as many bytes: the server of a configuration reads requests from a
// connection that always has one, and writes to nowhere. bench/hitpath measures the same
// with sockets.
func BenchmarkHit(b *testing.B) {
	document := []byte(`<rss version="2.0"><channel><title>t</title><link>https://a.example/</link><description>d</description>` +
		strings.Repeat(`<item><title>An entry</title><guid>tag:a</guid><description>Some text of an entry</description></item>`, 300) + `</channel></rss>`)
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", "application/rss+xml")
		h.Set("Cache-Control", "max-age=86400")
		h.Set("Last-Modified", "Sun, 01 Nov 2026 09:00:00 GMT")
		h.Set("ETag", `"first"`)
		_, _ = w.Write(document)
	}))
	defer origin.Close()
	site := "http://" + strings.TrimPrefix(origin.URL, "http://")

	endless := &endlessNet{conns: make(map[string]chan net.Conn)}
	caddy.RegisterNetwork("endless", endless.listen)
	const tag = `"0123456789abcdef"`
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(fmt.Appendf(nil, `{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	pollard {
		store bolt %s
		private_upstreams 127.0.0.0/8
	}
}
http://gateway.test {
	bind endless/gateway
	feed_gateway {
		feed /feed.xml %s/feed.xml
		allow 127.0.0.1
		clients any
	}
}
http://shield.test {
	bind endless/shield
	feed_shield {
		origin {
			reverse_proxy %[2]s
		}
	}
}
http://same.test {
	bind endless/same
	header ETag %[3]q
	respond 304
}
http://whole.test {
	bind endless/whole
	header ETag %[3]q
	respond %[4]q
}
`, b.TempDir(), site, tag, strings.Repeat("0123456789abcde\n", 27000/16)), nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := caddy.Load(config, true); err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := caddy.Stop(); err != nil {
			b.Error(err)
		}
	}()
	endless.answer(b, "gateway", request("gateway.test", "/feed.xml", "Accept-Encoding: gzip"))
	shield := endless.answer(b, "shield", request("shield.test", "/feed.xml", "Accept-Encoding: gzip"))
	gateway := endless.answer(b, "gateway", request("gateway.test", "/feed.xml", "Accept-Encoding: gzip"))
	byURL := "/" + site + "/feed.xml"
	for _, c := range []struct {
		name, host, path string
		status           int
		header           []string
	}{
		{"304/respond", "same", "/feed.xml", 304, []string{"Accept-Encoding: gzip", "If-None-Match: " + tag}},
		{"304/gateway", "gateway", "/feed.xml", 304, []string{"Accept-Encoding: gzip", "If-None-Match: " + gateway.Header.Get("ETag")}},
		{"304/gateway by URL", "gateway", byURL, 304, []string{"Accept-Encoding: gzip", "If-None-Match: " + gateway.Header.Get("ETag")}},
		{"304/shield", "shield", "/feed.xml", 304, []string{"Accept-Encoding: gzip", "If-None-Match: " + shield.Header.Get("ETag")}},
		{"304 by date/gateway", "gateway", "/feed.xml", 304, []string{"Accept-Encoding: gzip", "If-Modified-Since: " + gateway.Header.Get("Last-Modified")}},
		{"200/respond", "whole", "/feed.xml", 200, []string{"Accept-Encoding: gzip"}},
		{"200/gateway", "gateway", "/feed.xml", 200, []string{"Accept-Encoding: gzip"}},
		{"200/shield", "shield", "/feed.xml", 200, []string{"Accept-Encoding: gzip"}},
	} {
		b.Run(c.name, func(b *testing.B) {
			asked := request(c.host+".test", c.path, c.header...)
			if got := endless.answer(b, c.host, asked); got.StatusCode != c.status {
				b.Fatalf("got %s", got.Status)
			}
			b.ReportAllocs()
			before := cpuTime(b)
			endless.ask(c.host, asked, b.N, io.Discard)
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is what the process has taken so far: on a machine that does other work it says
// more than the time that has passed.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func request(host, path string, header ...string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: FreshRSS/1.24.1 (Linux; https://freshrss.org)\r\nAccept: application/rss+xml, */*;q=0.1\r\n%s\r\n\r\n",
		path, host, strings.Join(header, "\r\n"))
}

// endlessNet is a network whose clients are requests without end.
type endlessNet struct {
	mu    sync.Mutex
	conns map[string]chan net.Conn // by host
}

func (n *endlessNet) listen(_ context.Context, _, host, _ string, _ uint, _ net.ListenConfig) (any, error) {
	return &memListener{address: host + ":80", conns: n.of(host), done: make(chan struct{})}, nil
}

func (n *endlessNet) of(host string) chan net.Conn {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conns[host] == nil {
		n.conns[host] = make(chan net.Conn)
	}
	return n.conns[host]
}

// ask makes a request many times over one connection.
func (n *endlessNet) ask(host string, request []byte, times int, answers io.Writer) {
	c := &endlessConn{request: request, left: times, answers: answers, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	n.of(host) <- c
	<-c.done
}

// answer makes it once, and returns the answer.
func (n *endlessNet) answer(b *testing.B, host string, request []byte) *http.Response {
	b.Helper()
	var raw bytes.Buffer
	n.ask(host, request, 1, &raw)
	resp, err := http.ReadResponse(bufio.NewReader(&raw), nil)
	if err != nil {
		b.Fatal(err)
	}
	return resp
}

// endlessConn is the server's end of a connection.
type endlessConn struct {
	request []byte
	left    int    // how often it comes
	rest    []byte // of one that has begun
	answers io.Writer
	done    chan struct{}
	wake    chan struct{} // of a read that has to give up
	once    sync.Once
}

// Read gives one request at a time. A read of one byte is the server's, which looks
// whether the client goes away while it is answered.
func (c *endlessConn) Read(p []byte) (int, error) {
	if len(p) == 1 {
		<-c.wake
		return 0, os.ErrDeadlineExceeded
	}
	if len(c.rest) == 0 {
		if c.left == 0 {
			return 0, io.EOF
		}
		c.left--
		c.rest = c.request
	}
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

func (c *endlessConn) Write(p []byte) (int, error) { return c.answers.Write(p) }
func (c *endlessConn) Close() error                { c.once.Do(func() { close(c.done) }); return nil }
func (c *endlessConn) LocalAddr() net.Addr         { return memAddr("server:80") }
func (c *endlessConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 50000}
}
func (c *endlessConn) SetDeadline(time.Time) error      { return nil }
func (c *endlessConn) SetWriteDeadline(time.Time) error { return nil }
func (c *endlessConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && time.Until(t) < 0 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return nil
}
