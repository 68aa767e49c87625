// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	marks   = regexp.MustCompile("[^a-z0-9 _-]")
)

// Links between the pages lead to files, and to headings in them.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../bench/RESULTS.md", "../packaging/README.md", "../bench/scale/README.md", "../cache/store/README.md", "../README.md", "../SECURITY.md", "../CONTRIBUTING.md", "../CHANGELOG.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.HasPrefix(m[1], "http") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := filepath.Join(filepath.Dir(page), file)
			if file == "" {
				target = page
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", page, m[1], err)
			} else if anchor != "" && !hasHeading(t, target, anchor) {
				t.Errorf("%s links to %s, which is not a heading of that page", page, m[1])
			}
		}
	}
}

// hasHeading reports whether a page has a heading with the anchor that GitHub gives it.
func hasHeading(t *testing.T, page, anchor string) bool {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		words := marks.ReplaceAllString(strings.ToLower(m[1]), "")
		if strings.ReplaceAll(words, " ", "-") == anchor {
			return true
		}
	}
	return false
}
