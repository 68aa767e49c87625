// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package bolt

import "os"

// abandon closes a file that bbolt has locked, mapped and lost. Where locks
// belong to the process or the handle, closing it unlocks it.
func abandon(f *os.File) error { return f.Close() }
