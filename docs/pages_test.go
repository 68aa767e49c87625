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

// The section about pages has each page of a gateway or shield: each key of the routes of package pages.
func TestPages(t *testing.T) {
	_, section, found := strings.Cut(allPages(t), "\n## Pages\n")
	if !found {
		t.Fatal("no page has a section Pages")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	files, err := filepath.Glob("../caddymodule/pages/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code.Write(text)
	}
	names := make(map[string]string) // by constant
	for _, c := range regexp.MustCompile(`\b(page[A-Z]\w*) += "([^"]*)"`).FindAllStringSubmatch(code.String(), -1) {
		names[c[1]] = c[2]
	}
	_, routes, _ := strings.Cut(code.String(), "\nvar routes = map[string]route{\n")
	routes, _, _ = strings.Cut(routes, "\n}\n")
	count := 0
	for _, key := range regexp.MustCompile(`(?m)^\t(?:"([^"]+)"|(\w+)): `).FindAllStringSubmatch(routes, -1) {
		name, known := key[1], key[1] != ""
		if !known {
			name, known = names[key[2]]
		}
		if count++; !known {
			t.Errorf("%s is no constant", key[2])
		}
		if name != "" && !strings.Contains(name, ".") && !strings.Contains(section, "`/-/"+name+"`") && !strings.Contains(section, "`"+name+"`") { // files have a dot
			t.Errorf("the section Pages does not have %s", name)
		}
	}
	if count < 10 {
		t.Errorf("only %d pages were found", count)
	}
}
