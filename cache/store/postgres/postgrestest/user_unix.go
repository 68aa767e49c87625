// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package postgrestest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"sync"
	"syscall"
)

// account is the user that the server runs as if this process is root's, as whom
// PostgreSQL refuses to run; nil: that of this process.
var account = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, _ := strconv.Atoi(u.Uid)
			gid, _ := strconv.Atoi(u.Gid)
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	return nil
})

func own(path string) error {
	if a := account(); a != nil {
		return os.Chown(path, int(a.Uid), int(a.Gid))
	}
	return nil
}

func unprivileged(cmd *exec.Cmd) {
	if a := account(); a != nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a}
	}
}
