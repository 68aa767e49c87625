// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"bufio"
	"bytes"
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
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
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

	n := new(stage.Network)
	n.Use()
	const tag = `"0123456789abcdef"`
	config, _, err := caddyconfig.GetAdapter("caddyfile").Adapt(fmt.Appendf(nil, `{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	pollard {
		store sqlite %s
		private_upstreams 127.0.0.0/8
	}
}
http://gateway.test {
	bind mem/gateway
	feed_gateway {
		feed /feed.xml %s/feed.xml
		allow 127.0.0.1
		clients any
	}
}
http://shield.test {
	bind mem/shield
	feed_shield {
		origin {
			reverse_proxy %[2]s
		}
	}
}
http://same.test {
	bind mem/same
	header ETag %[3]q
	respond 304
}
http://whole.test {
	bind mem/whole
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
	getOnce(b, n, "gateway", request("gateway.test", "/feed.xml", "Accept-Encoding: gzip"))
	shield := getOnce(b, n, "shield", request("shield.test", "/feed.xml", "Accept-Encoding: gzip"))
	gateway := getOnce(b, n, "gateway", request("gateway.test", "/feed.xml", "Accept-Encoding: gzip"))
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
			if got := getOnce(b, n, c.host, asked); got.StatusCode != c.status {
				b.Fatalf("got %s", got.Status)
			}
			b.ReportAllocs()
			before := cpuTime(b)
			repeat(b, n, c.host, asked, b.N, io.Discard)
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

// repeat makes a request many times over one connection.
func repeat(b *testing.B, n *stage.Network, host string, request []byte, times int, answers io.Writer) {
	b.Helper()
	c := &repeatedConn{request: request, left: times, answers: answers, done: make(chan struct{}), wake: make(chan struct{}, 1)}
	if err := n.Accept(b.Context(), host+":80", c); err != nil {
		b.Fatal(err)
	}
	<-c.done
}

// getOnce makes a request once, and returns the answer.
func getOnce(b *testing.B, n *stage.Network, host string, request []byte) *http.Response {
	b.Helper()
	var raw bytes.Buffer
	repeat(b, n, host, request, 1, &raw)
	resp, err := http.ReadResponse(bufio.NewReader(&raw), nil)
	if err != nil {
		b.Fatal(err)
	}
	return resp
}

// repeatedConn is the server's end of a connection whose client repeats a request.
type repeatedConn struct {
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
func (c *repeatedConn) Read(p []byte) (int, error) {
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

func (c *repeatedConn) Write(p []byte) (int, error) { return c.answers.Write(p) }
func (c *repeatedConn) Close() error                { c.once.Do(func() { close(c.done) }); return nil }
func (c *repeatedConn) LocalAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 80}
}
func (c *repeatedConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(198, 51, 100, 1), Port: 50000}
}
func (c *repeatedConn) SetDeadline(time.Time) error      { return nil }
func (c *repeatedConn) SetWriteDeadline(time.Time) error { return nil }
func (c *repeatedConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() && time.Until(t) < 0 {
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
	return nil
}
