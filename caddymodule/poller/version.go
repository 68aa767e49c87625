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

// release is the version of this release, or of the next one. CHANGELOG.md begins with it.
const release = "1.0.0"

// Version returns the version of this module in the running binary: the one that the
// linker has set, or else the one of the Go command. A build of a checkout that has no
// tag is a "-dev" of the next release.
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(version, info)
}

// versionOf returns the version by what the linker has set and by build information, which may be nil.
func versionOf(linked string, info *debug.BuildInfo) string {
	if linked != "" {
		return strings.TrimPrefix(linked, "v")
	}
	const module = "github.com/feedpollard/pollard"
	if info == nil {
		return release + "-dev"
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path != module || m.Replace != nil { // a directory in place of the module
			continue
		}
		// Go makes up v0.0.0-<time>-<commit> if no tag is known.
		if v := strings.TrimPrefix(m.Version, "v"); v != "" && v != "(devel)" && !strings.HasPrefix(v, "0.0.0-") {
			return v
		}
	}
	return release + "-dev"
}
