// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package early puts a socket of this process in the place of the service manager's, before Caddy
// reads its name. It imports nothing that imports package net, so Go initializes it before package
// net, and Caddy's package notify after that.
package early

import (
	"os"
	"runtime"
	"strconv"
)

// Names of the socket of the service manager, and of that in its place. Both are empty if there is no
// service manager, or if the system has no sockets without files.
var ServiceManager, Own = replace()

func replace() (manager, own string) {
	if manager = os.Getenv("NOTIFY_SOCKET"); manager == "" || runtime.GOOS != "linux" {
		return "", ""
	}
	own = "@pollard-" + strconv.Itoa(os.Getpid())
	if os.Setenv("NOTIFY_SOCKET", own) != nil {
		return "", ""
	}
	return manager, own
}
