// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"runtime/debug"
	"strings"
)

// Version returns the version of this module in the running binary, "dev" where
// it was built from a working tree.
func Version() string {
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
