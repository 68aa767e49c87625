// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"math"

	"golang.org/x/sys/unix"
)

// Space returns the free space and the size of the file system that a directory is on, in
// bytes. If they are not known, all of it is free.
func Space(dir string) (free, all uint64) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return math.MaxUint64, 0
	}
	return uint64(max(fs.F_bavail, 0)) * uint64(fs.F_bsize), fs.F_blocks * uint64(fs.F_bsize)
}
