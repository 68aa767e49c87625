// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
)

// forwarded sends a request as a proxy at home sends it. Fields may have several lines.
func forwarded(t *testing.T, target, protocol string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", "http://feeds.test"+target, nil)
	r.RemoteAddr = net.JoinHostPort(stage.Home, "1234")
	r.Proto = protocol
	r.ProtoMajor, r.ProtoMinor, _ = http.ParseHTTPVersion(protocol)
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	stage.Serve(t, 0, w, r)
	return w
}

// What a proxy says of a client admits it only as far as the client cannot have written it.
func TestClientsBehindProxies(t *testing.T) {
	const (
		none   = ""
		loose  = "trusted_proxies static private_ranges"
		strict = loose + "\ntrusted_proxies_strict"
		xff    = "X-Forwarded-For"
	)
	for _, tt := range []struct {
		name, servers, clients string
		header                 []string
		want                   string // part of the refusal; empty: served
	}{
		{"no proxy", none, "", nil, ""},
		{"distrusted", none, "", []string{xff, "8.8.8.8"}, "trusted_proxies static 192.168.1.7` and `trusted_proxies_strict`"},
		{"distrusted, Forwarded", none, "", []string{"Forwarded", "for=8.8.8.8"}, "trusted_proxies"},
		{"distrusted, X-Real-IP", none, "private_ranges", []string{"X-Real-Ip", "8.8.8.8"}, "trusted_proxies"},
		{"distrusted, of somebody at home", none, "", []string{xff, "192.168.1.9"}, "trusted_proxies"},
		{"distrusted, the field of another line", "client_ip_headers CF-Connecting-IP", "", []string{"Cf-Connecting-Ip", "8.8.8.8"}, "trusted_proxies"},
		{"distrusted, any", none, "any", []string{xff, "8.8.8.8"}, ""},
		{"distrusted, its own range", none, "192.168.1.0/24", []string{xff, "8.8.8.8"}, ""},

		{"abroad", loose, "", []string{xff, "8.8.8.8"}, "does not cover 8.8.8.8"},
		{"at home", loose, "", []string{xff, "192.168.1.9"}, ""},
		{"at home, with a port", loose, "", []string{xff, "192.168.1.9:5000"}, ""},
		{"two proxies at home", loose, "", []string{xff, "192.168.1.9, 172.18.0.2"}, ""},
		{"abroad, says that it is at home", loose, "", []string{xff, "192.168.1.5, 8.8.8.8"}, "does not cover 8.8.8.8"},
		{"abroad, two proxies", loose, "", []string{xff, "192.168.1.5, 8.8.8.8, 172.18.0.2"}, "does not cover 8.8.8.8"},
		{"abroad, a line of its own", loose, "", []string{xff, "192.168.1.5", xff, "8.8.8.8"}, "does not cover 8.8.8.8"},
		{"abroad, another field", loose + "\nclient_ip_headers X-Real-IP X-Forwarded-For", "", []string{"X-Real-Ip", "192.168.1.5", xff, "8.8.8.8"}, "does not cover 8.8.8.8"},
		{"no address", loose, "", []string{xff, "unknown"}, "the proxy at 192.168.1.7 does not say whose request this is"},
		{"no address after one", loose, "", []string{xff, "192.168.1.5, unknown"}, "does not cover"},
		{"an empty field", loose, "", []string{xff, ""}, "does not say whose request this is"},
		{"only Forwarded", loose, "", []string{"Forwarded", "for=8.8.8.8"}, "does not say whose request this is"},
		{"only X-Real-IP", loose, "", []string{"X-Real-Ip", "8.8.8.8"}, "does not say whose request this is"},
		{"a range", loose, "198.51.100.0/24", []string{xff, "198.51.100.9"}, ""},
		{"a range, after another", loose, "198.51.100.0/24", []string{xff, "198.51.100.9, 8.8.8.8"}, "does not cover 8.8.8.8"},
		{"private and a range", loose, "private 100.64.0.0/10", []string{xff, "100.64.1.2"}, ""},

		{"abroad, strict", strict, "", []string{xff, "8.8.8.8"}, "does not cover 8.8.8.8"},
		{"at home, strict", strict, "", []string{xff, "192.168.1.9"}, ""},
		{"two proxies at home, strict", strict, "", []string{xff, "192.168.1.9, 172.18.0.2"}, ""},
		{"abroad, says that it is at home, strict", strict, "", []string{xff, "192.168.1.5, 8.8.8.8"}, "does not cover 8.8.8.8"},
		{"abroad, a line of its own, strict", strict, "", []string{xff, "192.168.1.5", xff, "8.8.8.8"}, "does not cover 8.8.8.8"},
		{"a range, strict: what is before it is not trusted", strict, "198.51.100.0/24", []string{xff, "8.8.8.8, 198.51.100.9, 172.18.0.2"}, ""},
		{"no address, strict", strict, "", []string{xff, "unknown"}, "does not say whose request this is"},
		{"only Forwarded, strict", strict, "", []string{"Forwarded", "for=8.8.8.8"}, "does not say whose request this is"},
		{"client_ip_headers Forwarded, strict", strict + "\nclient_ip_headers Forwarded", "", []string{"Forwarded", "for=8.8.8.8"}, "does not say whose request this is"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			options, clients := "", ""
			if tt.servers != none {
				options = "servers {\n" + tt.servers + "\n}"
			}
			if tt.clients != "" {
				clients = "clients " + tt.clients
			}
			onSite(t, options, "feed_gateway {\n"+clients+"\n}", func(t *testing.T) {
				w := forwarded(t, "/https://one.example/feed", "HTTP/1.1", tt.header...)
				if served := w.Code == 200; served != (tt.want == "") || !served && (w.Code != 403 || !strings.Contains(w.Body.String(), tt.want)) {
					t.Errorf("%d %s, want %q", w.Code, w.Body, tt.want)
				}
				w = forwarded(t, "/-/", "HTTP/1.1", tt.header...)
				if _, why, _ := strings.Cut(strings.ReplaceAll(tt.want, "`", ""), " "); tt.want != "" && (w.Code != 403 || !strings.Contains(w.Body.String(), why)) {
					t.Errorf("the home page does not say why: %d %s, want %q", w.Code, w.Body, why)
				}
			})
		})
	}
}

// nginx's default, HTTP/1.0 without a field, does not make a stranger one of the house. A proxy that
// says for whom it asks may speak HTTP/1.0.
func TestSilentProxy(t *testing.T) {
	onSite(t, "servers {\ntrusted_proxies static private_ranges\ntrusted_proxies_strict\n}", "feed_gateway {\ntoken alice "+secret+"\nfeed /one.xml https://one.example/feed\n}", func(t *testing.T) {
		const byURL = "/https://two.example/feed"
		for _, tt := range []struct {
			target, protocol, address string
			want                      int
		}{
			{byURL, "HTTP/1.0", "", 403},
			{"/-/feeds", "HTTP/1.0", "", 403},
			{byURL, "HTTP/1.1", "", 200},
			{byURL, "HTTP/2.0", "", 200},
			{byURL, "HTTP/1.0", "192.168.1.9", 200},
			{byURL, "HTTP/1.0", "8.8.8.8", 403},
			{"/one.xml", "HTTP/1.0", "", 200},
			{"/~" + secret + byURL, "HTTP/1.0", "", 200},
		} {
			var header []string
			if tt.address != "" {
				header = []string{"X-Forwarded-For", tt.address}
			}
			w := forwarded(t, tt.target, tt.protocol, header...)
			if w.Code != tt.want {
				t.Errorf("%s over %s from %q: %d %s, want %d", tt.target, tt.protocol, tt.address, w.Code, w.Body, tt.want)
			}
			if tt.want == 403 && tt.address == "" && !strings.Contains(w.Body.String(), "proxy_set_header X-Forwarded-For $remote_addr") {
				t.Errorf("%s: the refusal does not say what to write: %s", tt.target, w.Body)
			}
		}
	})
}

// Limits count by the last public address, so a client that names another one first does not spend its share.
func TestNewFeedsBehindProxyAreLimitedByTheLastAddress(t *testing.T) {
	onSite(t, "servers {\ntrusted_proxies static private_ranges\n}", "feed_gateway {\nclients any\n}", func(t *testing.T) {
		counts := map[int]int{}
		for i := range 70 {
			counts[forwarded(t, fmt.Sprintf("/https://n%d.example/feed", i), "HTTP/1.1", "X-Forwarded-For", fmt.Sprintf("7.%d.1.1, 8.8.8.8", i)).Code]++
		}
		if counts[200] != 60 || counts[429] != 10 {
			t.Errorf("one stranger who invents addresses: %v, want 60 new feeds", counts)
		}
		if w := forwarded(t, "/https://other.example/feed", "HTTP/1.1", "X-Forwarded-For", "7.1.1.1"); w.Code != 200 {
			t.Errorf("one whose address was invented: %d %s", w.Code, w.Body)
		}
	})
}

// The pages say as what a client comes, and why it is admitted or not.
func TestPagesSayWhoTheyThinkYouAre(t *testing.T) {
	onSite(t, "servers {\ntrusted_proxies static private_ranges\n}", "feed_gateway {\ntoken alice "+secret+"\n}", func(t *testing.T) {
		for _, tt := range []struct{ target, address, want string }{
			{"/", "192.168.1.9", "You come as 192.168.1.9. Private addresses may use this gateway."},
			{"/-/about", "192.168.1.9", "You come as 192.168.1.9. Private addresses may use this gateway."},
			{"/", "8.8.8.8", "You come as 8.8.8.8. The gateway's clients line does not cover 8.8.8.8"},
			{"/-/about", "8.8.8.8", "You come as 8.8.8.8. The gateway's clients line does not cover 8.8.8.8"},
			{"/~" + secret + "/", "8.8.8.8", "You come with a token, which this gateway knows."},
			{"/~wrong-token/", "192.168.1.9", "The token in this URL is not known"},
		} {
			w := forwarded(t, tt.target, "HTTP/1.1", "X-Forwarded-For", tt.address)
			if text := strings.ReplaceAll(w.Body.String(), "&#39;", "'"); !strings.Contains(text, tt.want) {
				t.Errorf("%s from %s: %d %s, want %s", tt.target, tt.address, w.Code, text, tt.want)
			}
		}
		r := httptest.NewRequest("GET", "http://feeds.test/", nil)
		r.RemoteAddr = "127.0.0.1:1234"
		w := httptest.NewRecorder()
		stage.Serve(t, 0, w, r)
		if !strings.Contains(w.Body.String(), "You come as 127.0.0.1, the machine of Pollard itself. If you sit at another one") {
			t.Errorf("as this machine: %s", w.Body)
		}
	})
}

// The address to write is one at which Caddy listens as it does now, whatever the proxy says.
func TestSiteToWriteBehindProxy(t *testing.T) {
	onSites(t, "servers {\ntrusted_proxies static private_ranges\ntrusted_proxies_strict\n}", ":8080 {\nbind void/feeds\nfeed_gateway\n}\n", func(t *testing.T) {
		for _, header := range [][]string{{"X-Forwarded-For", "192.168.1.9"}, {"X-Forwarded-For", "192.168.1.9", "X-Forwarded-Proto", "https", "X-Forwarded-Host", "feeds.example.com"}} {
			r := httptest.NewRequest("GET", "http://feeds.example.com/https://one.example/feed", nil)
			r.RemoteAddr = net.JoinHostPort(stage.Home, "1234")
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			w := httptest.NewRecorder()
			stage.Serve(t, 0, w, r)
			if w.Code != 403 || !strings.Contains(w.Body.String(), "needs http://feeds.example.com:8080 as the address") {
				t.Errorf("%q: %d %s", header, w.Code, w.Body)
			}
		}
	})
}

// Lines that leave to clients which address they have are warned of, once for each server.
func TestLooseProxiesAreWarnedOf(t *testing.T) {
	const trusted = "trusted_proxies static private_ranges\n"
	for _, tt := range []struct {
		servers, want string
		n             int
	}{
		{"", "", 0},
		{trusted, "write the line `trusted_proxies_strict` into the global option `servers`", 1},
		{trusted + "trusted_proxies_strict\n", "", 0},
		{trusted + "trusted_proxies_strict\nclient_ip_headers X-Forwarded-For Forwarded\n", "client_ip_headers Forwarded: Caddy cannot read the addresses", 1},
		{"trusted_proxies_unix\n", "write the line `trusted_proxies_strict`", 1},
	} {
		log := filepath.Join(t.TempDir(), "warnings.log")
		options := "log warnings {\noutput file " + log + " {\nroll_disabled\n}\nlevel WARN\ninclude pollard\n}\nservers {\n" + tt.servers + "}"
		onSite(t, options, "handle /a/* {\nfeed_gateway\n}\nhandle /b/* {\nfeed_gateway\n}\nfeed_gateway\n", func(t *testing.T) {
			text, err := os.ReadFile(log)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), "\n"); n != tt.n || !strings.Contains(string(text), tt.want) {
				t.Errorf("%q: %d warnings, want %d with %q:\n%s", tt.servers, n, tt.n, tt.want, text)
			}
		})
	}
}
