// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostExposed is how exposed the service may be by systemd's own measure, in tenths: 0
// is not at all, 100 is wholly.
const mostExposed = "20"

func TestUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	unit, err := os.ReadFile("pollard.service")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(unit), " AF_NETLINK\n") {
		t.Error("the unit forbids to look up the addresses of this machine (netlink(7)), which polls must not reach")
	}
	// The binary is not installed here, and systemd looks for it.
	installed := strings.ReplaceAll(string(unit), "/usr/bin/pollard", "/bin/true")
	if installed == string(unit) {
		t.Error("the unit does not run /usr/bin/pollard")
	}
	path := filepath.Join(t.TempDir(), "pollard.service")
	if err := os.WriteFile(path, []byte(installed), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err := exec.Command(analyze, "security", "--offline=true", "--threshold="+mostExposed, path).CombinedOutput(); err != nil {
		t.Errorf("security: %v\n%s", err, out)
	}
}

// The container's health is that of the instance in it, by the only program that the image has.
func TestHealthOfTheContainer(t *testing.T) {
	for _, file := range []string{"Dockerfile", "compose.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), `"/usr/bin/pollard", "feeds", "health"]`) {
			t.Errorf("%s does not ask for health", file)
		}
	}
}

// Goreleaser packs the files that packaging/build packs, but for the binary, which
// goreleaser adds by itself.
func TestReleasesInstallTheSame(t *testing.T) {
	contents := func(path string) []string {
		t.Helper()
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, after, found := strings.Cut(string(text), "contents:\n")
		list, _, ended := strings.Cut(after, "scripts:\n")
		if !found || !ended {
			t.Fatalf("%s has no contents before its scripts", path)
		}
		var entries []string
		for entry := range strings.SplitSeq(list, "- src: ") {
			entries = append(entries, strings.Join(strings.Fields(entry), " "))
		}
		return entries[1:]
	}
	built, released := contents("nfpm.yaml"), contents("../.goreleaser.yaml")
	if len(built) < 5 || !slices.Equal(built[1:], released) {
		t.Errorf("nfpm.yaml installs\n%s\nand .goreleaser.yaml\n%s", strings.Join(built[1:], "\n"), strings.Join(released, "\n"))
	}
}

// Releases are for systems that .ci/run looks at.
func TestReleasesAreForCheckedSystems(t *testing.T) {
	release, err := os.ReadFile("../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run, err := os.ReadFile("../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(release), "    goos:\n")
	list, _, found := strings.Cut(after, "    goarch:\n")
	systems := strings.Fields(strings.ReplaceAll(list, "- ", ""))
	for _, system := range systems {
		if !strings.Contains(string(run), " "+system+"/") {
			t.Errorf(".ci/run does not vet for %s", system)
		}
	}
	if !found || len(systems) < 3 {
		t.Errorf("releases are for %q", systems)
	}
}
