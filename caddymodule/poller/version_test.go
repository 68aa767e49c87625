// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"os"
	"regexp"
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
