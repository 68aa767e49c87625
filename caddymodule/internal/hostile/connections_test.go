// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// crowd is how many connections an attack has.
func crowd() int {
	if *campaign {
		return 5000
	}
	return 300
}

// hold opens many connections, each of which sends something and reads nothing, and
// keeps them open while another reader is served.
func hold(t *testing.T, c *child, n int, request func(i int) string) {
	t.Helper()
	conns := make([]net.Conn, n)
	places := make(chan struct{}, 64)
	var all sync.WaitGroup
	for i := range conns {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			conn, err := net.Dial("tcp", c.address)
			if err != nil {
				t.Errorf("connection %d: %v", i, err)
				return
			}
			_ = conn.(*net.TCPConn).SetReadBuffer(4096)
			conns[i] = conn
			_, _ = io.WriteString(conn, request(i)) // it may have been refused
		})
	}
	all.Wait()
	begun := time.Now()
	for range 5 {
		if a := c.get("/one.xml"); a.Status != 200 || a.Body != feed {
			t.Errorf("another reader got %v", a)
		}
	}
	served, goroutines, descriptors := time.Since(begun)/5, c.goroutines(), c.descriptors()
	if goroutines > 120+3*n || descriptors > 60+2*n {
		t.Errorf("%d goroutines and %d descriptors for %d connections", goroutines, descriptors, n)
	}
	t.Logf("%d connections: another reader was served in %v; %d goroutines, %d descriptors", n, served.Round(time.Millisecond), goroutines, descriptors)
	for _, conn := range conns {
		if conn != nil {
			conn.Close()
		}
	}
}

// Readers who take nothing, and such who send a byte now and then, cost little and keep
// nobody waiting.
func TestHostileConnections(t *testing.T) {
	t.Parallel()
	origin := newWatched(t)
	large, _ := largeOrigin(t)
	c := start(t, setup{
		app:  "private_upstreams 127.0.0.0/8\nhost * {\n\tspacing 0\n\tconcurrency 64\n}",
		site: "feed_gateway {\n\tfeed /one.xml " + origin.URL + "/one.xml\n\tfeed /large.xml " + large.URL + "/large\n\tclients any\n}\n",
	})
	for _, path := range []string{"/one.xml", "/large.xml"} {
		if a := c.get(path); a.Status != 200 {
			t.Fatalf("%s: %d", path, a.Status)
		}
	}
	took := c.costs(time.Duration(crowd()) * maxReaderCPU / 50)
	took.maxPeak = raced * (memorySetting + memoryBeside)
	for name, request := range map[string]func(i int) string{
		"nobody reads 10 MiB":            func(int) string { return "GET /large.xml HTTP/1.1\r\nHost: x\r\n\r\n" },
		"nobody reads 10 MiB, in gzip":   func(int) string { return "GET /large.xml HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n" },
		"half a request":                 func(i int) string { return "GET /one.xml HTTP/1.1\r\nHost: x\r\nX-" + strings.Repeat("a", i%50) },
		"a body that does not come":      func(int) string { return "POST /one.xml HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" },
		"nothing":                        func(int) string { return "" },
		"a new feed of a dead host each": func(i int) string { return fmt.Sprintf("GET /http://127.0.0.1:1/%d HTTP/1.1\r\nHost: x\r\n\r\n", i) },
	} {
		end := took.begin(name)
		t.Run(name, func(t *testing.T) { hold(t, c, crowd(), request) })
		end()
	}
	took.over()
	took.polls = origin.requests("/one.xml")
	took.log(fmt.Sprintf("6 times %d connections", crowd()))
	if n := origin.requests("/one.xml"); n != 1 {
		t.Errorf("%d requests at the origin", n)
	}
}

// Many connections, each of which invents URLs, use up the share of their network. Others,
// and all that is known, do not notice.
func TestInventedURLs(t *testing.T) {
	t.Parallel()
	origin := newWatched(t)
	c := start(t, setup{
		app:     "private_upstreams 127.0.0.0/8\nhost * {\n\tspacing 0\n\tconcurrency 64\n}",
		site:    "feed_gateway {\n\tfeed /one.xml " + origin.URL + "/one.xml\n\tclients any\n}\n",
		servers: "trusted_proxies static 127.0.0.0/8",
	})
	known := feedAt(origin.URL + "/known.xml")
	if a := c.get(known, "X-Forwarded-For", "198.51.100.7"); a.Status != 200 {
		t.Fatalf("the feed that is to be known: %v", a)
	}
	connections := 1000
	if *campaign {
		connections = 10_000
	}
	took := c.costs(time.Duration(connections) * maxReaderCPU / 100)
	end := took.begin("all of them")
	var mu sync.Mutex // guards statuses
	statuses := make(map[int]int)
	places := make(chan struct{}, 64)
	var all sync.WaitGroup
	for i := range connections {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			a, err := c.ask("GET", fmt.Sprintf("/http://127.0.0.1:1/%d", i), "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", i%256))
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			statuses[a.Status]++
			mu.Unlock()
			if i%100 == 0 {
				for _, path := range []string{known, "/one.xml"} {
					if a := c.get(path, "X-Forwarded-For", "203.0.113.9"); a.Status != 200 || a.Body != feed {
						t.Errorf("%s, for the attacker's own network: %v", path, a)
					}
				}
			}
		})
	}
	all.Wait()
	// 60 at once and one each 10 s.
	if tried := connections - statuses[http.StatusTooManyRequests]; tried < 60 || tried > 120 {
		t.Errorf("answers %v: want about 60 that were tried", statuses)
	}
	for i := range 20 {
		path := fmt.Sprintf("%s/new/%d", origin.URL, i)
		if a := c.get(feedAt(path), "X-Forwarded-For", "198.51.100.7"); a.Status != 200 {
			t.Errorf("a new feed for another network: %v", a)
		}
	}
	end()
	took.over()
	took.log(fmt.Sprintf("%d connections, answered %v", connections, statuses))
}

// Streams of HTTP/2 that are reset as soon as they have been opened (CVE-2023-44487) end
// with their connection.
func TestRapidReset(t *testing.T) {
	t.Parallel()
	origin := newWatched(t)
	c := start(t, setup{
		app:     "private_upstreams 127.0.0.0/8",
		site:    "feed_gateway {\n\tfeed /one.xml " + origin.URL + "/one.xml\n\tclients any\n}\n",
		servers: "protocols h1 h2c",
	})
	c.get("/one.xml")
	took := c.costs(maxOriginCPU)
	end := took.begin("all of them")
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			conn, err := net.Dial("tcp", c.address)
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
			_, _ = io.WriteString(conn, http2.ClientPreface)
			framer := http2.NewFramer(conn, nil)
			_ = framer.WriteSettings()
			for id := uint32(1); id < 20_000; id += 2 {
				var block bytes.Buffer
				h := hpack.NewEncoder(&block)
				path := "/one.xml"
				if n%2 == 0 {
					path = fmt.Sprintf("/http://127.0.0.1:1/%d/%d", n, id)
				}
				for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "x"}, {":path", path}} {
					_ = h.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
				}
				if framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true}) != nil ||
					framer.WriteRSTStream(id, http2.ErrCodeCancel) != nil {
					return // it has been thrown out
				}
			}
		})
	}
	for range 20 {
		if a := c.get("/one.xml"); a.Status != 200 || a.Body != feed {
			t.Errorf("another reader got %v", a)
		}
	}
	all.Wait()
	end()
	took.over()
	if took.polls = origin.requests("/one.xml"); took.polls != 1 {
		t.Errorf("%d requests at the origin", took.polls)
	}
	took.log("8 connections with 10,000 streams each")
}
