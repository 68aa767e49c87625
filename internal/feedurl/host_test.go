// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import "testing"

// A name that ends in a number is an IPv4 address or nothing: some resolvers read
// it as an address.
func TestNumericHosts(t *testing.T) {
	for host, refused := range map[string]bool{
		"example.com": false, "1.example.com": false, "example.1com": false, "127.0.0.1": false, "[::1]": false, "0x7f.example": false,
		"a.0xg": false, "1": true, "1.2.3": true, "1.2.3.4.5": true, "example.123": true, "0x": true, "a.0xff": true, "256.1.1.1": true,
	} {
		if _, err := ParseHost(host); (err != nil) != refused {
			t.Errorf("ParseHost(%q): %v", host, err)
		}
	}
}
