// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sqlite

import (
	"math"

	"golang.org/x/sys/unix"
)

// diskSpace returns the free space and the size of the file system that a directory is on, in
// bytes. If they are not known, all of it is free.
func diskSpace(dir string) (free, all uint64) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return math.MaxUint64, 0
	}
	return uint64(fs.Bavail) * uint64(fs.Bsize), uint64(fs.Blocks) * uint64(fs.Bsize)
}
