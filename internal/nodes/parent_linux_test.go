// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"os/exec"
	"syscall"
)

// endWithParent has a process end with the test that starts it, however that ends.
func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
