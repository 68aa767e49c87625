// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || freebsd || dragonfly

package disk

import (
	"math"

	"golang.org/x/sys/unix"
)

// Space returns the free space and the size of the file system that a directory is on, in
// bytes. If they are not known, all of it is free. FreeBSD counts less than nothing as free
// once the reserve of root is in use.
func Space(dir string) (free, all uint64) {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return math.MaxUint64, 0
	}
	return uint64(max(int64(fs.Bavail), 0)) * uint64(fs.Bsize), uint64(fs.Blocks) * uint64(fs.Bsize)
}
