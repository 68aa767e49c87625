// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
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
