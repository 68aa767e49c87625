// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// hiding are spellings of 127.0.0.9 and hosts that only look like it, which must not lead there.
var hiding = []string{
	"127.0.0.9", "127.0.0.9.", "x:y@127.0.0.9", "example.com@127.0.0.9", "127.9", "127.0.9", "127.000.000.009", "0177.0.0.011", "0x7f.0x0.0x0.0x9", "2130706441", "0x7f000009", "017700000011", "6425673737",
	"[::ffff:127.0.0.9]", "[::ffff:7f00:9]", "[::127.0.0.9]", "[64:ff9b::7f00:9]", "[2002:7f00:9::1]", "127%2e0%2e0%2e9", "127。0。0。9", "１２７.0.0.9",
	"127.0.0.9%00.example.com", "127.0.0.9#.example.com", "127.0.0.9\\.example.com", "127.0.0.9,example.com", "0.0.0.0", "0", "[::]",
}

// TestHostileAddresses tries to reach addresses that are not allowed through a gateway: by all spellings,
// and by redirects from one that is allowed. A server is at all of them, and each connection counts. Package
// upstream has tests of all kinds of addresses, of names, and of names that change.
func TestHostileAddresses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // guards reached
	reached := make(map[string]int)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusFound)
			return
		}
		fmt.Fprint(w, feed)
	}))
	server.Listener.Close()
	var err error
	if server.Listener, err = net.Listen("tcp", "0.0.0.0:0"); err != nil {
		t.Fatal(err)
	}
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			defer mu.Unlock()
			reached[conn.LocalAddr().String()]++
		}
	}
	server.Start()
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	allowed := "http://127.0.0.1:" + port
	to := func(target string) string { return allowed + "/?to=" + url.QueryEscape(target) }

	c := start(t, setup{app: strings.Replace(quick, "127.0.0.0/8", "127.0.0.1/32", 1), site: gatewayByURL})
	if a := c.get("/" + to(to(allowed+"/good.xml"))); a.Status != 200 || a.Body != feed {
		t.Fatalf("redirects are not followed: %v", a)
	}
	var all sync.WaitGroup
	for _, host := range hiding {
		all.Go(func() {
			host += ":" + port
			for _, path := range []string{
				"/http://" + host + "/feed", "/?url=" + url.QueryEscape("http://"+host+"/query"), "/" + to("http://"+host+"/redirect"), "/" + to(to("//"+host+"/hop")),
			} {
				if got := c.get(path); got.Status < 400 {
					t.Errorf("%s: %v", path, got)
				}
			}
		})
	}
	all.Wait()
	mu.Lock()
	defer mu.Unlock()
	if n := reached["127.0.0.1:"+port]; len(reached) > 1 || n < 3*len(hiding) {
		t.Errorf("there were connections to %v", reached)
	}
}
