// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the lines below a key of a YAML file, without the indentation of the first of them.
func section(t *testing.T, path, key string) string {
	t.Helper()
	_, after, found := strings.Cut("\n"+read(t, path), key+"\n")
	if !found {
		t.Fatalf("%s has no %s", path, strings.TrimSpace(key))
	}
	indent := after[:len(after)-len(strings.TrimLeft(after, " "))]
	var lines strings.Builder
	for line := range strings.Lines(after) {
		rest, inside := strings.CutPrefix(line, indent)
		if !inside {
			break
		}
		lines.WriteString(rest)
	}
	return lines.String()
}

// Goreleaser packs the files and scripts that nfpm.yaml has, but for the binary, which goreleaser adds by itself.
func TestReleasesInstallTheSame(t *testing.T) {
	for _, key := range []string{"contents:", "overrides:", "apk:", "recommends:", "description: |"} {
		built, released := section(t, "nfpm.yaml", "\n"+key), section(t, "../.goreleaser.yaml", "\n    "+key)
		built = strings.ReplaceAll(built, "depends:", "dependencies:")
		if key == "contents:" {
			var ok bool
			if built, ok = strings.CutPrefix(built, "- src: packaging/root/pollard\n  dst: /usr/bin/pollard\n  file_info:\n    mode: 0755\n"); !ok {
				t.Errorf("nfpm.yaml does not begin with the binary:\n%s", built)
			}
		}
		if built != released {
			t.Errorf("%s in nfpm.yaml:\n%s\nand in .goreleaser.yaml:\n%s", key, built, released)
		}
	}
}

// Each file that a package takes is there, or is made by the script that writes pages, and each script of a package is one.
func TestFilesOfPackages(t *testing.T) {
	for _, match := range regexp.MustCompile(`(?m)(?:src|post\w+|pre\w+): (\S+)$`).FindAllStringSubmatch(read(t, "nfpm.yaml"), -1) {
		path := filepath.Join("..", match[1])
		if strings.HasPrefix(match[1], "packaging/root/") {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if script := strings.HasPrefix(read(t, path), "#!"); script != (info.Mode()&0o111 != 0) {
			t.Errorf("%s: mode %v", path, info.Mode())
		} else if script {
			if out, err := exec.Command("sh", "-n", path).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", path, err, out)
			}
		}
	}
}

// Releases are for systems that .ci/run looks at.
func TestReleasesAreForCheckedSystems(t *testing.T) {
	run := read(t, "../.ci/run")
	targets := strings.Fields(strings.ReplaceAll(section(t, "../.goreleaser.yaml", "\n    targets:"), "- ", ""))
	for _, target := range targets {
		system, _, _ := strings.Cut(target, "_")
		if !strings.Contains(run, " "+system+"/") {
			t.Errorf(".ci/run does not vet for %s", system)
		}
	}
	if len(targets) < 12 {
		t.Errorf("releases are for %q", targets)
	}
}

// A snapshot has the version that a checkout has.
func TestVersionOfSnapshots(t *testing.T) {
	newest := regexp.MustCompile(`(?m)^## ([0-9.]+)`).FindStringSubmatch(read(t, "../CHANGELOG.md"))
	if newest == nil {
		t.Fatal("the changelog has no version")
	}
	if !strings.Contains(read(t, "../.goreleaser.yaml"), "version_template: "+newest[1]+"-dev\n") {
		t.Errorf("snapshots are not of %s-dev", newest[1])
	}
}

// Images and workflows build with the Go that go.mod asks for.
func TestVersionOfGo(t *testing.T) {
	want := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "../go.mod"))[1]
	workflows, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(workflows) == 0 {
		t.Fatalf("%q, %v", workflows, err)
	}
	for _, path := range append(workflows, "Dockerfile") {
		found := regexp.MustCompile(`go-version: "([^"]*)"|golang:([0-9.]+)`).FindAllStringSubmatch(read(t, path), -1)
		if len(found) == 0 || slices.ContainsFunc(found, func(m []string) bool { return m[1]+m[2] != want }) {
			t.Errorf("%s: %q, and go.mod says %s", path, found, want)
		}
	}
}
