// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/loopback"
)

// dialFrom connects like a client at an address to a proxy that reads the PROXY protocol.
func dialFrom(client string) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err == nil {
			_, err = fmt.Fprintf(conn, "PROXY TCP4 %s 127.0.0.1 40000 80\r\n", client)
		}
		return conn, err
	}
}

// Addresses of clients of a proxy.
const (
	home     = "192.168.1.9"
	stranger = "8.8.8.8"
)

// through requests a page through a proxy as a client at an address does.
func through(t *testing.T, proxy, client, path string, header ...string) answered {
	t.Helper()
	r, err := http.NewRequest("GET", "http://"+proxy+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "feeds.home.arpa"
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: dialFrom(client)}
	defer transport.CloseIdleConnections()
	a, err := doBy(&http.Client{Transport: transport, Timeout: time.Minute}, r)
	if err != nil {
		t.Errorf("%s: %v", path, err)
	}
	return a
}

// trusting is what the global option servers of a Caddyfile says of a proxy.
var trusting = map[string]string{
	"distrusts": "",
	"trusts":    "trusted_proxies static 127.0.0.0/8",
	"strict":    "trusted_proxies static 127.0.0.0/8\ntrusted_proxies_strict",
}

// expectStrangersOutside fails if a stranger sees the pages through a proxy, whatever it says of itself, or if a client at
// home does not although the proxy can tell it.
func expectStrangersOutside(t *testing.T, proxy string, tells bool) {
	t.Helper()
	invented := [][]string{nil}
	if tells { // else what a client has sent goes through
		invented = append(invented,
			[]string{"X-Forwarded-For", "192.168.1.5"}, []string{"X-Forwarded-For", "192.168.1.5", "X-Forwarded-For", "10.0.0.1"},
			[]string{"X-Forwarded-For", "unknown"}, []string{"Forwarded", "for=192.168.1.5"}, []string{"X-Real-Ip", "192.168.1.5"})
	}
	for _, header := range invented {
		for _, path := range []string{"/-/feeds", "/https://example.invalid/feed.xml"} {
			if a := through(t, proxy, stranger, path, header...); a.Status != 403 {
				t.Errorf("a stranger with %q gets %s: %v", header, path, a)
			}
		}
	}
	if a := through(t, proxy, home, "/-/feeds"); (a.Status == 200) != tells {
		t.Errorf("a client at home gets %v, want its pages: %v", a, tells)
	}
}

// Through nginx, whichever way it says who asks, a stranger is never one of the house. If
// it says nothing, no one is.
func TestStrangersBehindNginx(t *testing.T) {
	t.Parallel()
	for trust, servers := range trusting {
		c := start(t, setup{site: "feed_gateway", anyHost: true, servers: servers})
		for line, tells := range map[string]bool{
			"proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header Host $host;": true,
			"proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header Host $host;":               true,
			"proxy_set_header Host $host;": false,
			"":                             false,
		} {
			t.Run(trust+", "+line, func(t *testing.T) {
				proxy := loopback.FreeAddress(t)
				runNginx(t, proxy, "server { listen "+proxy+" proxy_protocol; location / { proxy_pass http://"+c.address+"; "+line+" } }")
				if servers == "" {
					if a := through(t, proxy, home, "/-/feeds"); a.Status != 403 {
						t.Errorf("through a proxy that is not trusted, a client at home gets %v", a)
					}
					if a := through(t, proxy, stranger, "/-/feeds", "X-Forwarded-For", "192.168.1.5"); a.Status != 403 {
						t.Errorf("through a proxy that is not trusted, a stranger gets %v", a)
					}
					return
				}
				expectStrangersOutside(t, proxy, tells)
			})
		}
	}
}

// The same through another Caddy, which replaces what clients send.
func TestStrangersBehindCaddy(t *testing.T) {
	t.Parallel()
	for _, trust := range []string{"trusts", "strict"} {
		t.Run(trust, func(t *testing.T) {
			c := start(t, setup{site: "feed_gateway", anyHost: true, servers: trusting[trust]})
			front := start(t, setup{site: "reverse_proxy " + c.address, anyHost: true, servers: "listener_wrappers {\nproxy_protocol {\nallow 127.0.0.0/8\n}\n}"})
			expectStrangersOutside(t, front.address, true)
		})
	}
}

// The same through HAProxy, which appends a line of its own, or says it by the PROXY protocol.
func TestStrangersBehindHAProxy(t *testing.T) {
	t.Parallel()
	const base = "defaults\n\tmode http\n\ttimeout client 60s\n\ttimeout server 60s\n\ttimeout connect 60s\n"
	for name, tt := range map[string]struct{ servers, front, back string }{
		"trusts":         {trusting["trusts"], "option forwardfor", ""},
		"strict":         {trusting["strict"], "option forwardfor", ""},
		"PROXY protocol": {"listener_wrappers {\nproxy_protocol {\nallow 127.0.0.0/8\n}\n}", "", "send-proxy-v2"},
	} {
		t.Run(name, func(t *testing.T) {
			c, proxy := start(t, setup{site: "feed_gateway", anyHost: true, servers: tt.servers}), loopback.FreeAddress(t)
			runHAProxy(t, proxy, base+"frontend f\n\tbind "+proxy+" accept-proxy\n\t"+tt.front+"\n\tdefault_backend b\nbackend b\n\tserver s "+c.address+" "+tt.back+"\n")
			expectStrangersOutside(t, proxy, true)
		})
	}
}

// Behind nginx, a page whose name resolves to the proxy gets nothing that clients at home alone may
// have, whatever X-Forwarded-Host its script sends and whichever name nginx passes on.
func TestNamesBehindNginx(t *testing.T) {
	t.Parallel()
	c := start(t, setup{site: "feed_gateway", anyHost: true, servers: trusting["trusts"]})
	keeps, replaces := loopback.FreeAddress(t), loopback.FreeAddress(t)
	runNginx(t, replaces, strings.NewReplacer("KEEPS", keeps, "REPLACES", replaces, "POLLARD", c.address).Replace(`
	proxy_set_header X-Forwarded-For $remote_addr;
	server { listen KEEPS; location / { proxy_pass http://POLLARD; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr; } }
	server { listen REPLACES; location / { proxy_pass http://POLLARD; proxy_set_header X-Forwarded-Host $host; proxy_set_header X-Forwarded-For $remote_addr; } }
`))
	for _, tt := range []struct{ name, proxy, host, forwarded, want string }{
		{"a name of the house", keeps, "feeds.home.arpa", "", `"gateway": "http://feeds.home.arpa/"`},
		{"a stranger's name", keeps, "evil.example.org", "", "403"},
		{"a stranger's name, and a script that sends another", keeps, "evil.example.org", "feeds.home.arpa", "403"},
		{"a name of the house, replaced", replaces, "feeds.home.arpa", "", `"gateway": "http://feeds.home.arpa/"`},
		{"a stranger's name, replaced", replaces, "evil.example.org", "", "403"},
		{"a stranger's name, replaced, and a script that sends another", replaces, "evil.example.org", "feeds.home.arpa", "403"},
	} {
		r, err := http.NewRequest("GET", "http://"+tt.proxy+"/-/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = tt.host
		r.Header.Set("Accept", "application/json")
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-Host", tt.forwarded)
		}
		got, err := do(r)
		if err != nil || (tt.want == "403") != (got.Status == 403) || got.Status != 403 && !strings.Contains(got.Body, tt.want) {
			t.Errorf("%s: %v %v, want %s", tt.name, got, err, tt.want)
		}
	}
}
