// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	_ "github.com/feedpollard/pollard/caddymodule"
)

// child is the environment variable that makes a test binary Pollard.
const child = "POLLARD_TEST_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(child) != "" {
		caddycmd.Main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Pollard does what the rows ask for, and the page has all of them.
func TestPollard(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"} {
		t.Setenv(name, t.TempDir())
	}
	t.Setenv(child, "1")
	rows := slices.Concat(ofReaders, ofSites)
	pollard := program{"Pollard", os.Args[0], configurePollard}
	for i, seen := range pollard.run(rows, 2*time.Second) {
		if seen != "" {
			t.Errorf("%s: %s: %s", rows[i].about, rows[i].name, seen)
		}
	}
}

func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/conformance.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range slices.Concat(ofReaders, ofSites) {
		if !regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(r.name) + ` \| ` + regexp.QuoteMeta(r.by) + ` \| yes \| (yes|no) \| (yes|no) \|$`).Match(page) {
			t.Errorf("docs/conformance.md has no row %q (%s) that Pollard keeps", r.name, r.by)
		}
	}
}
