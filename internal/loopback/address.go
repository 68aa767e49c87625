// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package loopback finds addresses for servers that tests start as processes.
package loopback

import (
	"net"
	"sync"
	"testing"
)

var given sync.Map // addresses that were found before

// FreeAddress is an address on this machine where nobody listens, and which nobody in
// this process has been given before.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := l.Addr().String()
		l.Close()
		if _, before := given.LoadOrStore(address, true); !before {
			return address
		}
	}
}
