// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"math"

	"golang.org/x/sys/windows"
)

// Space returns the free space and the size of the file system that a directory is on, in
// bytes. If they are not known, all of it is free.
func Space(dir string) (free, all uint64) {
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil || windows.GetDiskFreeSpaceEx(path, &free, &all, nil) != nil {
		return math.MaxUint64, 0
	}
	return free, all
}
