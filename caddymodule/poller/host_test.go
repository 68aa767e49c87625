// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import "testing"

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
