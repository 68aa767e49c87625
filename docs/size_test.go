// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What people have to read stays short: a page takes some minutes, and all of them an afternoon.
const (
	maxWords  = 1500 // of a page
	maxReadme = 12_000
	maxDocs   = 20_000 // words of all pages
	maxEntry  = 1200   // words of the newest entry of CHANGELOG.md
)

func TestSizes(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words := len(strings.Fields(string(text)))
		if all += words; words > maxWords {
			t.Errorf("%s has %d words, want %d at most", page, words, maxWords)
		}
	}
	if all > maxDocs {
		t.Errorf("the pages have %d words, want %d at most", all, maxDocs)
	}
	changes, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	if entries := strings.Split(string(changes), "\n## "); len(entries) < 2 || len(strings.Fields(entries[1])) > maxEntry {
		t.Errorf("the newest of %d entries of CHANGELOG.md has more than %d words", len(entries)-1, maxEntry)
	}
	if readme, err := os.Stat("../README.md"); err != nil || readme.Size() > maxReadme {
		t.Errorf("README.md has more than %d bytes (%v)", maxReadme, err)
	}
}
