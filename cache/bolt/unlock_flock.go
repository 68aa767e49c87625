// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package bolt

import (
	"errors"
	"os"
	"syscall"
)

// abandon closes a file that bbolt has locked, mapped and lost. The map keeps the
// open file alive, and its flock with it, so that closing it is not enough.
func abandon(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}
