// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Caddy's commands that would replace the program by one without Pollard say what to do instead.
func TestProgramIsNotReplaced(t *testing.T) {
	for _, command := range []string{"upgrade", "add-package example.com/module", "remove-package example.com/module"} {
		program := exec.Command(os.Args[0], strings.Fields(command)...)
		program.Env = append(os.Environ(), beMain+"=1")
		out, _ := program.CombinedOutput()
		if code := program.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(out), "go install ") || strings.Contains(string(out), "panic") {
			t.Errorf("%s: exit %d, %s", command, code, out)
		}
	}
}
