// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"os"
	"regexp"
	"runtime/debug"
	"testing"
)

// The changelog begins with the version that a checkout without a tag is built as.
func TestVersionOfTheChangelog(t *testing.T) {
	changes, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	newest := regexp.MustCompile(`(?m)^## ([0-9.]+)`).FindSubmatch(changes)
	if newest == nil || string(newest[1])+"-dev" != Version() {
		t.Errorf("the changelog begins with %q, and this is %s", newest, Version())
	}
}

// Each way to build the program gives it the version that it is.
func TestVersionOfABuild(t *testing.T) {
	const own, dev = "github.com/feedpollard/pollard", release + "-dev"
	main := func(version string) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: own, Version: version}}
	}
	dependency := func(m debug.Module) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Path: "caddy", Version: "(devel)"}, Deps: []*debug.Module{{Path: "example.com/other", Version: "v9.0.0"}, &m}}
	}
	for _, tt := range []struct {
		name, linked string
		info         *debug.BuildInfo
		want         string
	}{
		{"packaging/build at a tag", "1.2.3", main("(devel)"), "1.2.3"},
		{"the image with VERSION=v1.2.3", "v1.2.3", main("(devel)"), "1.2.3"},
		{"the image without VERSION, and go run", "", main("(devel)"), dev},
		{"go build and go install without a tag", "", main("v0.0.0-20261126210000-cd20633aa11b+dirty"), dev},
		{"go build at a tag, and go install by the module's path", "", main("v1.2.3"), "1.2.3"},
		{"xcaddy", "", dependency(debug.Module{Path: own, Version: "v1.2.3"}), "1.2.3"},
		{"xcaddy with a checkout", "", dependency(debug.Module{Path: own, Version: "v1.2.3", Replace: &debug.Module{Path: "../pollard"}}), dev},
		{"no build information", "", nil, dev},
	} {
		if got := versionOf(tt.linked, tt.info); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
