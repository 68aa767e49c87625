// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package postgrestest

import "os/exec"

func own(string) error { return nil }

func unprivileged(*exec.Cmd) {}
