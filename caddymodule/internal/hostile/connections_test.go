// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
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

// Readers that do not read, and readers that send a byte now and then, cost little and do
// not delay others.
func TestHostileConnections(t *testing.T) {
	t.Parallel()
	origin, url := newOrigin(t)
	large, _ := largeOrigin(t)
	c := start(t, setup{
		app:  "private_upstreams 127.0.0.0/8\nhost * {\n\tspacing 0\n\tconcurrency 64\n}",
		site: "feed_gateway {\n\tfeed /one.xml " + url + "/one.xml\n\tfeed /large.xml " + large.URL + "/large\n\tclients any\n}\n",
	})
	for _, path := range []string{"/one.xml", "/large.xml"} {
		if a := c.get(path); a.Status != 200 {
			t.Fatalf("%s: %d", path, a.Status)
		}
	}
	took := c.costs(time.Duration(crowd()) * maxReaderCPU / 50)
	took.maxPeak = raced * (memorySetting + memoryBeside)
	for name, request := range map[string]func(i int) string{
		"10 MiB that are not read":         func(int) string { return "GET /large.xml HTTP/1.1\r\nHost: x\r\n\r\n" },
		"10 MiB in gzip that are not read": func(int) string { return "GET /large.xml HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\n\r\n" },
		"half a request":                   func(i int) string { return "GET /one.xml HTTP/1.1\r\nHost: x\r\nX-" + strings.Repeat("a", i%50) },
		"a body that does not come":        func(int) string { return "POST /one.xml HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" },
		"nothing":                          func(int) string { return "" },
		"a new feed of a dead host each":   func(i int) string { return fmt.Sprintf("GET /http://127.0.0.1:1/%d HTTP/1.1\r\nHost: x\r\n\r\n", i) },
	} {
		end := took.begin(name)
		t.Run(name, func(t *testing.T) { hold(t, c, crowd(), request) })
		end()
	}
	took.over()
	took.polls = len(origin.Requests())
	took.log(fmt.Sprintf("6 times %d connections", crowd()))
	if n := len(origin.Requests()); n != 1 {
		t.Errorf("%d requests at the origin", n)
	}
}
