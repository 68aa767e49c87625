// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"net/http/httptest"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

func TestOwnHost(t *testing.T) {
	for host, want := range map[string]bool{
		"": true, "192.168.1.5": true, "192.168.1.5:8080": true, "8.8.8.8": true, "[fe80::1%25eth0]:8080": true, "[::1]": true, "::1": true,
		"localhost:8080": true, "nas": true, "NAS.:8080": true, "pollard:8080": true, "nas.local": true, "feeds.home.arpa.": true,
		"feeds.home": true, "feeds.lan:80": true, "nas.internal": true, "feeds.corp": true, "pollard.mynet": true, "feeds.speedport.ip": true,
		"pollard.default.svc.cluster.local": true, "nas.tail1234.ts.net": true,
		"evil.example.com": false, "EVIL.COM.": false, "feeds.fritz.box": false, "evil.duckdns.org": false, "evil.github.io:80": false,
		"evil.co.uk": false, "a b": false, "xarpa.home.arpa.com": false, "evilts.net": false,
	} {
		if got := ownHost(host); got != want {
			t.Errorf("%q: %v, want %v", host, got, want)
		}
	}
}

// An Origin is compared to both names of a request. Its port counts if the name has one, as proxies leave it out.
func TestOwnOrigin(t *testing.T) {
	for _, tt := range []struct {
		origin, host, forwarded string
		trusted, want           bool
	}{
		{"http://feeds.home.arpa", "feeds.home.arpa", "", false, true},
		{"http://FEEDS.home.arpa.", "feeds.home.arpa", "", false, true},
		{"http://feeds.home.arpa:8080", "feeds.home.arpa:8080", "", false, true},
		{"http://feeds.home.arpa:8080", "feeds.home.arpa", "", false, true},
		{"https://feeds.home.arpa", "feeds.home.arpa:443", "", false, true},
		{"http://[fd00::5]:8080", "[fd00::5]:8080", "", false, true},
		{"http://[fd00::5]", "[fd00::5]", "", false, true},
		{"https://feeds.home.arpa", "pollard:8080", "feeds.home.arpa", true, true},
		{"https://feeds.home.arpa:8443", "pollard:8080", "evil.example, feeds.home.arpa:8443", true, true},
		{"http://pollard:8080", "pollard:8080", "feeds.home.arpa", true, true},

		{"http://feeds.home.arpa:8081", "feeds.home.arpa:8080", "", false, false},
		{"https://feeds.home.arpa", "feeds.home.arpa:80", "", false, false},
		{"https://feeds.home.arpa:8443", "pollard:8080", "feeds.home.arpa:8444", true, false},
		{"https://evil.example", "pollard:8080", "evil.example, feeds.home.arpa", true, false},
		{"https://evil.example", "pollard:8080", "evil.example", false, false},
		{"null", "null", "", false, false},
		{"null", "", "", false, false},
		{"", "", "", false, false},
		{"file://", "", "", false, false},
		{"chrome-extension://abcdef", "feeds.home.arpa", "", false, false},
	} {
		r := httptest.NewRequest("POST", "/", nil)
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), httptest.NewRecorder(), nil)
		r.Host = tt.host
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-Host", tt.forwarded)
		}
		caddyhttp.SetVar(r.Context(), caddyhttp.TrustedProxyVarKey, tt.trusted)
		in := Read(r)
		if got := in.OwnOrigin(tt.origin); got != tt.want {
			t.Errorf("%s at %s and %s (trusted: %v): %v, want %v", tt.origin, tt.host, tt.forwarded, tt.trusted, got, tt.want)
		}
	}
}
