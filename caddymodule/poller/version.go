// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"runtime/debug"
	"strings"
)

// version is set when packages are built:
//
//	go build -ldflags '-X github.com/feedpollard/pollard/caddymodule/poller.version=1.2.3' ./cmd/pollard
var version string

// Version returns the version of this module in the running binary: the one that the
// linker has set, or else the one of the Go command, or "dev".
func Version() string {
	if version != "" {
		return strings.TrimPrefix(version, "v")
	}
	const module = "github.com/feedpollard/pollard"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "dev"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != module {
			continue
		}
		if v := strings.TrimPrefix(m.Version, "v"); v != "" && v != "(devel)" {
			return v
		}
	}
	return "dev"
}
