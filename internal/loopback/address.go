// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package loopback finds addresses for servers that tests start.
package loopback

import (
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
)

// Ports of servers are below those that systems pick on their own, for connections and
// for listeners of tests: Linux begins at 32768, RFC 6335 at 49152.
const (
	firstPort = 10_000
	ports     = 22_000
	eachTest  = 50 // how many a process of tests usually needs
)

// next is how many ports this process has tried.
var next atomic.Int64

// FreeAddress returns an address of this machine at which no server listens, another one at
// each call. Other processes of tests begin at other ports: two of Caddy's servers may listen
// at one address, and each would get some of the connections.
func FreeAddress(t testing.TB) string {
	t.Helper()
	begin := int64(os.Getpid()) * eachTest
	for range ports {
		port := firstPort + (begin+next.Add(1))%ports
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.FormatInt(port, 10)))
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String()
	}
	t.Fatal("no port is free")
	return ""
}
