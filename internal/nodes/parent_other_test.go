// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nodes_test

import "os/exec"

// endWithParent does nothing: other systems have no such order.
func endWithParent(*exec.Cmd) {}
