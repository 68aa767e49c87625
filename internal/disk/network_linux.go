// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package disk

import "golang.org/x/sys/unix"

// NetworkKind returns the kind of the network file system that a directory is on,
// empty if it is on none that is known.
func NetworkKind(dir string) string {
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) != nil {
		return ""
	}
	switch uint32(fs.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB"
	case unix.AFS_SUPER_MAGIC:
		return "AFS"
	case unix.V9FS_MAGIC:
		return "9P"
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph"
	}
	return ""
}
