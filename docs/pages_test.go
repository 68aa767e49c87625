// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The section about pages has each page of a gateway or shield.
func TestPages(t *testing.T) {
	code, err := os.ReadFile("../caddymodule/pages/pages.go")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(allPages(t), "\n## Pages\n")
	if !found {
		t.Fatal("no page has a section Pages")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	names := regexp.MustCompile(`(?m)^\tpage[A-Z]\w* += "([a-z]+)"$`).FindAllStringSubmatch(string(code), -1) // files have a dot
	for _, name := range names {
		if !strings.Contains(section, "`/-/"+name[1]+"`") && !strings.Contains(section, "`"+name[1]+"`") {
			t.Errorf("the section Pages does not have %s", name[1])
		}
	}
	if len(names) < 6 {
		t.Errorf("only %d pages were found", len(names))
	}
}
