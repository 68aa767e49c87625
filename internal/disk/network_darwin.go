// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import "golang.org/x/sys/unix"

// NetworkKind returns the kind of the network file system that a directory is on,
// empty if it is on none that is known.
func NetworkKind(dir string) string {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil || fs.Flags&unix.MNT_LOCAL != 0 {
		return ""
	}
	return unix.ByteSliceToString(fs.Fstypename[:])
}
