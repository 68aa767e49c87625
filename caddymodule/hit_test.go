// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !race

package caddymodule_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	_ "github.com/feedpollard/pollard/caddymodule"
	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
)

func init() {
	caddy.RegisterModule(new(prepared))
	httpcaddyfile.RegisterHandlerDirective("prepared", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		return new(prepared), nil
	})
	httpcaddyfile.RegisterDirectiveOrder("prepared", httpcaddyfile.Before, "respond")
}

// prepared is a handler that answers with a 304 of which all is prepared. What it costs, a request costs without
// Pollard: net/http and Caddy.
type prepared struct{}

// preparedHeader is the header of that answer.
var preparedHeader http.Header

func (*prepared) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.prepared", New: func() caddy.Module { return new(prepared) }}
}

func (*prepared) ServeHTTP(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	maps.Copy(w.Header(), preparedHeader)
	w.WriteHeader(http.StatusNotModified)
	return nil
}

// A hit takes little memory of its own: what a 304 by date allocates, less what one allocates that a handler has
// prepared. The whole is counted at a server to which a reader has a connection. With the race detector, pools
// lose some of their objects, so nothing can be counted.
func TestAllocationsOfHit(t *testing.T) {
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=86400")
		_ = stage.Feed(stage.Sample)(w, r)
	}))
	defer origin.Close()
	// Each has a server of its own, so that all have one route.
	gateway, shield, bare := loopback.FreeAddress(t), loopback.FreeAddress(t), loopback.FreeAddress(t)
	sites := fmt.Sprintf(`http://%[1]s {
	feed_gateway {
		feed /feed.xml %[4]s/feed.xml
		allow 127.0.0.1
	}
}
http://%[2]s {
	feed_shield {
		origin {
			reverse_proxy %[4]s
		}
	}
}
http://%[3]s {
	prepared
}
`, gateway, shield, bare, origin.URL)
	stage.RunInstance(t, "private_upstreams 127.0.0.0/8", sites, func(*stage.Stage, string) {
		for _, tt := range []struct {
			name, at, target string
			most             float64 // objects of its own
			share            float64 // of all
		}{
			{"at a path", gateway, "/feed.xml", 2, 0.05},
			{"by URL", gateway, "/" + origin.URL + "/feed.xml", 4, 0.05},
			{"a shield", shield, "/feed.xml", 3, 0.05},
		} {
			c := connect(t, tt.at)
			c.ask(tt.target, "")
			date := c.ask(tt.target, "").Header.Get("Last-Modified")
			answer := c.ask(tt.target, date)
			if answer.StatusCode != http.StatusNotModified {
				t.Fatalf("%s: %s with the date %q", tt.name, answer.Status, date)
			}
			preparedHeader = answer.Header.Clone()
			for _, name := range []string{"Date", "Server"} { // by net/http and Caddy
				preparedHeader.Del(name)
			}
			all := c.allocations(tt.target, date)
			own := all - connect(t, bare).allocations(tt.target, date)
			t.Logf("%s: %g of %g objects, %.1f %%", tt.name, own, all, own/all*100)
			if own > tt.most || own/all > tt.share {
				t.Errorf("%s: %g objects of %g are its own, want %g and %g %% at most", tt.name, own, all, tt.most, tt.share*100)
			}
		}
	})
}

// reader is a reader's connection.
type reader struct {
	t       *testing.T
	address string
	conn    net.Conn
	in      *bufio.Reader
}

func connect(t *testing.T, address string) *reader {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &reader{t, address, conn, bufio.NewReader(conn)}
}

// request returns a request for a feed: with a date, if it is not empty.
func (c *reader) request(target, date string) []byte {
	conditions := ""
	if date != "" {
		conditions = "If-Modified-Since: " + date + "\r\n"
	}
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: FreshRSS/1.24.1 (Linux; https://freshrss.org)\r\nAccept: application/rss+xml, */*;q=0.1\r\nAccept-Encoding: gzip\r\n%s\r\n", target, c.address, conditions)
}

// ask sends a request, and reads the answer.
func (c *reader) ask(target, date string) *http.Response {
	c.t.Helper()
	if _, err := c.conn.Write(c.request(target, date)); err != nil {
		c.t.Fatal(err)
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// allocations counts the objects of one request that gets a 304. The reader itself makes none. Other goroutines and the
// collector, which empties pools, add to the mean of some requests. If the server ends the last of them after the count,
// the mean is too low. So the median of many means is what a request makes.
func (c *reader) allocations(target, date string) float64 {
	c.t.Helper()
	sent, got := c.request(target, date), make([]byte, 4096)
	request := func() {
		if _, err := c.conn.Write(sent); err != nil {
			c.t.Fatal(err)
		}
		for n := 0; !bytes.HasSuffix(got[:n], []byte("\r\n\r\n")); {
			more, err := c.conn.Read(got[n:])
			if n += more; err != nil || !bytes.HasPrefix(got, []byte("HTTP/1.1 304")) {
				c.t.Fatalf("%s: %v: %s", target, err, got[:n])
			}
		}
	}
	const some = 50
	means := make([]float64, 41)
	for i := range means {
		means[i] = testing.AllocsPerRun(1, func() {
			for range some {
				request()
			}
		}) / some
	}
	slices.Sort(means)
	return math.Round(means[len(means)/2])
}
