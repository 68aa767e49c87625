// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/feedpollard/pollard/"

// floors are the packages of the module, the lowest floor first. A package imports only
// packages of lower floors, so those of one floor do not import each other. A new package
// needs a place here.
var floors = []string{
	"internal/clock internal/disk internal/early internal/feedurl internal/httpfield internal/namespace",
	"internal/markup policy",
	"internal/opml policy/document/site",
	"policy/document",
	"policy/document/links",
	"upstream internal/status cache/version cache/store",
	"internal/readers",
	"cache/store/sqlite cache/store/postgres cache/feedstate cache/queue",
	"cache cache/transfer",
	"caddymodule/config caddymodule/door",
	"caddymodule/poller",
	"caddymodule/pages",
	"caddymodule/command/check caddymodule/command/replay",
	"caddymodule/gateway caddymodule/shield caddymodule/command", // handlers and commands
	"caddymodule",
	"cmd/pollard",
}

// tools are packages that nothing imports but other tools, tests, and package docs.
var tools = []string{
	"internal/origintest", "internal/loopback", "internal/status/statustest", "cache/store/storetest", "cache/store/postgres/postgrestest", "caddymodule/internal/...",
	"bench/...", "docs", "packaging",
}

// above are packages that only one other may import. So handlers and commands never import each other, or
// what one of them is made of.
var above = map[string]string{
	"caddymodule/gateway":        "caddymodule",
	"caddymodule/shield":         "caddymodule",
	"caddymodule/command":        "caddymodule",
	"caddymodule/command/check":  "caddymodule/command",
	"caddymodule/command/replay": "caddymodule/command",
}

// directories are those of the module's root. Hidden ones are not counted.
var directories = []string{"bench", "cache", "caddymodule", "cmd", "docs", "internal", "packaging", "policy", "upstream"}

func TestFloors(t *testing.T) {
	floorOf := make(map[string]int)
	for i, floor := range floors {
		for name := range strings.FieldsSeq(floor) {
			floorOf[name] = i
		}
	}
	all := packages(t)
	for name := range floorOf {
		if !slices.ContainsFunc(all, func(p goPackage) bool { return p.ImportPath == module+name }) {
			t.Errorf("there is no package %s: delete it from this test", name)
		}
	}
	for _, p := range all {
		name := strings.TrimPrefix(p.ImportPath, module)
		floor, known := floorOf[name]
		if !known && !isTool(name) {
			t.Errorf("package %s has no floor: give it one in this test", name)
			continue
		}
		for _, imported := range p.Imports {
			if strings.HasPrefix(imported, "github.com/caddyserver/caddy") && path.Dir(name) != "cmd" && !strings.HasPrefix(name, "bench/") && !strings.HasPrefix(name+"/", "caddymodule/") {
				t.Errorf("%s imports %s: only caddymodule and cmd do, as a cold build of Caddy takes minutes", name, imported)
			}
			imported, ours := strings.CutPrefix(imported, module)
			switch only, closed := above[imported]; {
			case !ours || isTool(name):
			case isTool(imported):
				t.Errorf("%s imports %s, which is for tests and measurements", name, imported)
			case floorOf[imported] >= floor:
				t.Errorf("%s imports %s, which is not below it", name, imported)
			case strings.HasPrefix(name, "internal/") && (imported == "cache" || imported == "upstream"):
				t.Errorf("%s imports %s: what stands above that is not internal", name, imported)
			case closed && only != name:
				t.Errorf("%s imports %s: only %s does", name, imported, only)
			}
		}
	}
}

// TestRoot fails if the module's root has another directory: the tree is the index.
func TestRoot(t *testing.T) {
	entries, err := os.ReadDir("../..")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "dist" { // packaging/build writes there
			got = append(got, e.Name())
		}
	}
	if !slices.Equal(got, directories) {
		t.Errorf("the root has the directories %q, want %q", got, directories)
	}
}

// goPackage is a package as go list describes it. Imports of its tests are not in it.
type goPackage struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) (list []goPackage) {
	t.Helper()
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func isTool(name string) bool {
	return slices.ContainsFunc(tools, func(tool string) bool {
		below, all := strings.CutSuffix(tool, "...")
		return name == tool || all && strings.HasPrefix(name, below)
	})
}
