// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/origintest"
	"github.com/feedpollard/pollard/policy"
)

// proxied returns a client whose rules have these proxies, by pattern. Names that end in
// .test, and example.com, have a public address, .lan a private one, and others none.
func proxied(t *testing.T, proxies map[string]string, options ...Option) *Client {
	t.Helper()
	c := New(options...)
	t.Cleanup(c.Close)
	c.lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
		switch {
		case strings.HasSuffix(name, ".test"), name == "example.com":
			return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
		case name == "localhost":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		case strings.HasSuffix(name, ".lan"):
			return []netip.Addr{netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("192.168.1.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	rules := map[string]HostRule{"*": unpaced[0]}
	for pattern, text := range proxies {
		proxy, err := ParseProxy(text)
		if err != nil {
			t.Fatal(err)
		}
		rule := rules[pattern]
		rule.Pattern, rule.Proxy = pattern, proxy
		rules[pattern] = rule
	}
	c.Apply(Settings{Hosts: slices.Collect(maps.Values(rules))})
	return c
}

func TestParseProxy(t *testing.T) {
	for text, want := range map[string]string{
		"http://proxy": "", "https://proxy:8443/": "", "socks5://[::1]:9050": "", "socks5h://u:p@127.0.0.1": "", "off": "",
		"socks4://secret@proxy": "scheme", "ftp://secret@proxy": "scheme", "127.0.0.1:secret": "not the URL", "proxy": "not the URL", "": "not the URL", "localhost:1080": "scheme",
		"http://:8080": "has a host", "http://proxy/secret": "has a host", "http://proxy?secret": "has a host", "http://u:secret%@proxy": "not the URL",
	} {
		_, err := ParseProxy(text)
		if err == nil && want == "" {
			continue
		}
		if err == nil || want == "" || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "expected http, https, socks5 or socks5h") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want an error with %q", text, err, want)
		}
	}
}

// Each scheme reaches http and https origins, with the same request as without a proxy. Credentials
// of the proxy do not reach the origin. The environment has no influence.
func TestProxySchemes(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:9")
	}
	var seen http.Header
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		_, _ = w.Write([]byte(feedBody))
	})
	plainOrigin, secure := httptest.NewServer(answer), httptest.NewTLSServer(answer)
	defer plainOrigin.Close()
	defer secure.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(secure.Certificate())

	for _, scheme := range []string{"http", "https", "socks5", "socks5h"} {
		for _, target := range []struct{ url, to, want string }{
			{"http://example.com.test/feed?q", plainOrigin.Listener.Addr().String(), "GET http://example.com.test/feed?q"},
			{"http://example.com.test/a|b?q", plainOrigin.Listener.Addr().String(), "GET http://example.com.test/a%7Cb?q"}, // as the proxy shows it
			{"https://example.com/feed?q", secure.Listener.Addr().String(), "CONNECT 93.184.216.34:443"},
		} {
			proxy := &origintest.Proxy{To: target.to, User: url.UserPassword("u", "p")}
			if scheme == "https" {
				proxy.TLS = &tls.Config{Certificates: secure.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
			}
			address := proxy.Start(t)
			c := proxied(t, map[string]string{"example.com": scheme + "://u:p@" + address, "*.test": scheme + "://u:p@" + address}, WithTLS(&tls.Config{RootCAs: trusted}))
			a := c.Poll(t.Context(), ask(target.url))
			if a.Failure != "" || a.Status != http.StatusOK || string(a.Body) != feedBody {
				t.Fatalf("%s to %s: %d, failure %q: %v (%s)", scheme, target.url, a.Status, a.Failure, a.Err, a.Detail)
			}
			want := target.want
			if strings.HasPrefix(scheme, "socks") {
				u := feedurl.MustParse(target.url)
				if want = "SOCKS 93.184.216.34:" + u.Port(); scheme == "socks5h" {
					want = "SOCKS " + u.Address()
				}
			}
			asked := proxy.Asked()
			if len(asked) != 1 || asked[0].Line != want {
				t.Errorf("%s: the proxy was asked %v, want %s", scheme, asked, want)
			}
			if got := asked[0].Header.Get("User-Agent"); strings.Contains(got, "Go-http-client") {
				t.Errorf("the proxy got the User-Agent %q", got)
			}
			for name := range seen {
				if !slices.Contains([]string{"User-Agent", "Accept", "Accept-Encoding"}, name) {
					t.Errorf("%s to %s: the origin got the field %s", scheme, target.url, name)
				}
			}
		}
	}
}

// A proxy that connects to the origin gets an address that was checked, so that it does not matter which
// one it would find itself: the next one if it cannot reach the first, and the name only if that is
// forbidden for a host that the operator has named.
func TestProxyGetsCheckedAddress(t *testing.T) {
	origin := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(feedBody)) }))
	defer origin.Close()
	trusted := x509.NewCertPool()
	trusted.AddCert(origin.Certificate())
	const first, second = "93.184.216.34", "2606:2800:220:1::1"
	for _, tt := range []struct {
		name, scheme, pattern string
		refuse                map[string]int
		want                  []string
		failure               policy.Failure
	}{
		{"checked", "http", "*", nil, []string{"CONNECT " + first}, ""},
		{"checked", "socks5", "*", nil, []string{"SOCKS " + first}, ""},
		{"named", "http", "example.com", nil, []string{"CONNECT " + first}, ""},
		{"not reached", "http", "*", map[string]int{first: 502}, []string{"CONNECT " + first, "CONNECT [" + second + "]"}, ""},
		{"not reached", "socks5", "*", map[string]int{first: 502}, []string{"SOCKS " + first, "SOCKS [" + second + "]"}, ""},
		{"failed", "http", "*", map[string]int{first: 407}, []string{"CONNECT " + first}, policy.FailureProxy},
		{"forbidden", "http", "*", map[string]int{first: 403, second: 403}, []string{"CONNECT " + first, "CONNECT [" + second + "]"}, policy.FailureConnect},
		{"forbidden and named", "http", "example.com", map[string]int{first: 403, second: 403}, []string{"CONNECT " + first, "CONNECT [" + second + "]", "CONNECT example.com"}, ""},
	} {
		t.Run(tt.name+" "+tt.scheme, func(t *testing.T) {
			proxy := &origintest.Proxy{To: origin.Listener.Addr().String(), Refuse: tt.refuse}
			c := proxied(t, map[string]string{tt.pattern: tt.scheme + "://" + proxy.Start(t)}, WithTLS(&tls.Config{RootCAs: trusted}))
			lookups := 0
			c.lookup = func(context.Context, string) ([]netip.Addr, error) {
				if lookups++; lookups > 1 {
					return []netip.Addr{netip.MustParseAddr("10.9.9.9")}, nil
				}
				return []netip.Addr{netip.MustParseAddr(first), netip.MustParseAddr(second)}, nil
			}
			a := c.Poll(t.Context(), ask("https://example.com/"))
			var got []string
			for _, asked := range proxy.Asked() {
				got = append(got, strings.TrimSuffix(asked.Line, ":443"))
			}
			if a.Failure != tt.failure || !slices.Equal(got, tt.want) || lookups != 1 {
				t.Errorf("failure %q: %v; the proxy got %q, want %q; %d lookups", a.Failure, a.Err, got, tt.want, lookups)
			}
		})
	}
}

// A failure of the proxy, or of its connection to the origin, is not the feed's. It causes no
// pause of the host, and its credentials are not shown.
func TestProxyFailures(t *testing.T) {
	origin := origintest.New(origintest.OK(origintest.Feed(1, ""))).Start(t).Listener.Addr().String()
	untrusted := httptest.NewTLSServer(nil)
	defer untrusted.Close()
	dead := func(t *testing.T) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return l.Addr().String()
	}
	start := func(p *origintest.Proxy) func(*testing.T) string {
		return func(t *testing.T) string { return p.Start(t) }
	}
	needsUser := &origintest.Proxy{To: origin, User: url.UserPassword("u", "p")}
	for _, tt := range []struct {
		name, scheme string
		address      func(*testing.T) string
		target, want string
		failure      policy.Failure
	}{
		{"dead", "http", dead, "http://a.test/", "the proxy failed: connection refused", policy.FailureProxy},
		{"dead", "socks5h", dead, "https://a.test/", "the proxy failed: connection refused", policy.FailureProxy},
		{"not trusted", "https", start(&origintest.Proxy{TLS: &tls.Config{Certificates: untrusted.TLS.Certificates}}), "http://a.test/", "the proxy failed: x509: certificate signed by unknown authority", policy.FailureProxy},
		{"wrong password", "http", start(needsUser), "http://a.test/", "the proxy failed: status 407 Proxy Authentication Required", policy.FailureProxy},
		{"wrong password", "http", start(needsUser), "https://a.test/", "the proxy failed: status 407 Proxy Authentication Required", policy.FailureProxy},
		{"wrong password", "socks5", start(needsUser), "http://a.test/", "the proxy could not connect", policy.FailureConnect},
		{"refused", "http", start(&origintest.Proxy{To: origin, Refuse: map[string]int{"a.test": 429}}), "http://a.test/", "the proxy could not connect: status 429 Too Many Requests", policy.FailureConnect},
		{"origin away", "http", start(new(origintest.Proxy)), "http://a.test/", "the proxy could not connect: status 502 Bad Gateway", policy.FailureConnect},
		{"origin away", "http", start(new(origintest.Proxy)), "https://a.test/", "the proxy could not connect: status 502 Bad Gateway", policy.FailureConnect},
		{"origin away", "socks5h", start(new(origintest.Proxy)), "https://a.test/", "the proxy could not connect", policy.FailureConnect},
		{"origin not trusted", "http", start(&origintest.Proxy{To: untrusted.Listener.Addr().String()}), "https://a.test/", "the TLS handshake failed: x509", policy.FailureTLS},
		{"origin not trusted", "socks5h", start(&origintest.Proxy{To: untrusted.Listener.Addr().String()}), "https://a.test/", "the TLS handshake failed: x509", policy.FailureTLS},
		{"origin without TLS", "http", start(&origintest.Proxy{To: origin}), "https://a.test/", "TLS", policy.FailureTLS},
		{"origin without TLS", "socks5", start(&origintest.Proxy{To: origin}), "https://a.test/", "TLS", policy.FailureTLS},
	} {
		t.Run(tt.name+" "+tt.scheme+" "+tt.target, func(t *testing.T) {
			c := proxied(t, map[string]string{"*": tt.scheme + "://u:secret@" + tt.address(t)})
			a := c.Poll(t.Context(), ask(tt.target))
			if a.Failure != tt.failure || !strings.Contains(a.Err.Error(), tt.want) || a.Unsent() == (tt.failure == policy.FailureTLS) {
				t.Errorf("failure %q, unsent %v: %v (%s), want %q: %s", a.Failure, a.Unsent(), a.Err, a.Detail, tt.failure, tt.want)
			}
			if len(a.Pauses) > 0 || !a.NotBefore.IsZero() {
				t.Errorf("pauses %v until %v", a.Pauses, a.NotBefore)
			}
			if all := a.Err.Error() + a.Detail; strings.Contains(all, "secret") || strings.Contains(a.Err.Error(), "127.0.0.1") {
				t.Errorf("the error shows too much: %s", all)
			}
		})
	}
}

// Private addresses are refused behind a proxy too, before the proxy is asked. A name that
// cannot be looked up here passes only if a rule with a proxy names its host.
func TestProxyGuard(t *testing.T) {
	origin := origintest.New(origintest.OK(origintest.Feed(1, ""))).Start(t).Listener.Addr().String()
	proxy := &origintest.Proxy{To: origin}
	address := "socks5h://" + proxy.Start(t)
	for _, tt := range []struct {
		pattern, url string
		want         policy.Failure
	}{
		{"*", "http://a.test/", ""},
		{"*", "http://93.184.216.34/", ""},
		{"*", "http://192.168.1.1/", policy.FailureAddress},
		{"*", "http://[::1]/", policy.FailureAddress},
		{"*", "http://nas.lan/", policy.FailureAddress},
		{"*.lan", "http://nas.lan/", policy.FailureAddress},
		{"*", "http://a.test:25/", policy.FailureAddress},
		{"*", "http://unknown.example/", policy.FailureDNS},
		{"*.example", "http://unknown.example/", ""},
		{"unknown.example", "http://unknown.example/", ""},
		{"unknown.example", "http://unknown.example:25/", policy.FailureAddress},
		{"*.onion", "http://feeds.onion/", ""},
		{"*", "http://feeds.onion/", policy.FailureDNS},
	} {
		before := len(proxy.Asked())
		c := proxied(t, map[string]string{tt.pattern: address})
		a := c.Poll(t.Context(), ask(tt.url))
		if a.Failure != tt.want {
			t.Errorf("%s for %s: failure %q: %v, want %q", tt.pattern, tt.url, a.Failure, a.Err, tt.want)
		}
		if asked := len(proxy.Asked()) - before; (asked > 0) != (tt.want == "") {
			t.Errorf("%s for %s: the proxy got %d requests", tt.pattern, tt.url, asked)
		}
	}
	if _, err := lookupPublic(t.Context(), "feeds.onion"); err == nil {
		t.Error("a name of an onion service was looked up")
	}
}

// Each hop goes through the proxy of its own host, the most specific rule counts, and "off"
// is a rule too. Hosts behind a proxy are paced one by one. A host behind a proxy cannot redirect to a private address.
func TestProxyOfEachHop(t *testing.T) {
	origin := origintest.New(
		origintest.Redirect(http.StatusFound, "http://b.other.test/"), origintest.Redirect(http.StatusFound, "http://localhost/"), origintest.OK(origintest.Feed(1, "")))
	to := origin.Start(t).Listener.Addr().String()
	all, some := &origintest.Proxy{To: to}, &origintest.Proxy{To: to}
	c := proxied(t, map[string]string{"*": "http://" + all.Start(t), "*.other.test": "socks5://" + some.Start(t), "localhost": "off"})
	a := c.Poll(t.Context(), ask("http://a.test/"))
	if got := all.Asked(); len(got) != 1 || got[0].Line != "GET http://a.test/" {
		t.Errorf("the proxy of all hosts got %v", got)
	}
	if got := some.Asked(); len(got) != 1 || got[0].Line != "SOCKS 93.184.216.34:80" {
		t.Errorf("the other proxy got %v", got)
	}
	if a, b := c.Host(feedurl.MustParse("http://a.test/")).Site, c.Host(feedurl.MustParse("http://b.test/")).Site; a != "a.test" || b != "b.test" {
		t.Errorf("the hosts behind one proxy are paced as %q and %q", a, b)
	}
	if a.Failure != policy.FailureAddress { // it was resolved here: for the proxies it has no address
		t.Errorf("the last hop: failure %q: %v", a.Failure, a.Err)
	}

	inside := origintest.New(origintest.Redirect(http.StatusFound, "http://10.0.0.1/")).Start(t)
	tor := &origintest.Proxy{To: inside.Listener.Addr().String()}
	c = proxied(t, map[string]string{"*.onion": "socks5h://" + tor.Start(t)})
	a = c.Poll(t.Context(), ask("http://feeds.onion/"))
	if a.Failure != policy.FailureAddress || len(tor.Asked()) != 1 {
		t.Errorf("an onion service that redirects to a private address: failure %q: %v", a.Failure, a.Err)
	}
}
