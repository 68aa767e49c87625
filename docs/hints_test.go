// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// The page on decisions lists the hints by which a site or a feed says how often it may be polled.
func TestExplicitHints(t *testing.T) {
	text, err := os.ReadFile("how-polls-are-decided.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range status.HintNames() {
		if word := status.HintShort(name); policy.Explicit(name) && !strings.Contains(string(text), "`"+word+"`") {
			t.Errorf("how-polls-are-decided.md does not have `%s`", word)
		}
	}
}

// The page on failures ends with the names of all hints, and what people read for them.
func TestNamesOfHints(t *testing.T) {
	const page, end = "failures.md", "have its name.\n\n"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, written, found := strings.Cut(string(text), end)
	if !found {
		t.Fatalf("%s does not say %q", page, end)
	}
	var want strings.Builder
	want.WriteString("| words | name | meaning |\n| --- | --- | --- |\n")
	for _, name := range status.HintNames() {
		fmt.Fprintf(&want, "| %s | `%s` | %s |\n", status.HintShort(name), name, status.HintMeaning(name))
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+end+want.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if written != want.String() {
		t.Errorf("%s has other names than internal/status: run go test ./docs -update", page)
	}
}
