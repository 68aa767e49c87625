// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the list of licences")

// licences are recognized by words of their texts. The first that fits counts.
var licences = []struct{ name, words string }{
	{"Apache-2.0", "Apache License"},
	{"MPL-2.0", "Mozilla Public License"},
	{"BSD-3-Clause", "Neither the name"},
	{"BSD-3-Clause", "names of its contributors may not be used"},
	{"BSD-2-Clause", "Redistributions in binary form must reproduce"},
	{"MIT", "Permission is hereby granted, free of charge"},
	{"CC0-1.0", "CC0 1.0 Universal"},
	{"ISC", "Permission to use, copy, modify, and"},
}

// licences.txt lists the other modules in the program, with their licences. All of these
// permit the distribution of binaries. A new one needs a look by a person.
func TestLicences(t *testing.T) {
	const file = "licences.txt"
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}{{end}}{{end}}", "github.com/feedpollard/pollard/cmd/pollard")
	list.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("listing modules: %v", err)
	}
	modules := slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return line == "" })
	slices.Sort(modules)
	var got strings.Builder
	for _, line := range slices.Compact(modules) {
		path, dir, _ := strings.Cut(line, "\t")
		fmt.Fprintf(&got, "%s %s\n", path, licenceOf(t, path, dir))
	}
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the modules in the program have changed: look at their licences, and run this test with -update. They are\n%s", got.String())
	}
}

func licenceOf(t *testing.T, module, dir string) string {
	t.Helper()
	for _, pattern := range []string{"LICEN[SC]E*", "COPYING*", "[Ll]icen[sc]e*"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				continue // a directory
			}
			text := strings.Join(strings.Fields(string(raw)), " ")
			for _, l := range licences {
				if strings.Contains(text, l.words) {
					return l.name
				}
			}
		}
	}
	t.Errorf("%s: no licence that is known here, in %s", module, dir)
	return "unknown"
}
