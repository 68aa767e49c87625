// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// KeepOwner returns a function that gives the files of a directory whose names match a
// pattern, and the directories that were made for it, to the owner of the directory that
// exists now. It does nothing unless this process is root's.
func KeepOwner(dir, pattern string) func() error {
	nothing := func() error { return nil }
	if os.Geteuid() != 0 {
		return nothing
	}
	var created []string
	home := dir
	info, err := os.Stat(home)
	for errors.Is(err, fs.ErrNotExist) && home != filepath.Dir(home) {
		created, home = append(created, home), filepath.Dir(home)
		info, err = os.Stat(home)
	}
	if err != nil {
		return nothing // opening the store says what is wrong
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nothing
	}
	return func() error {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		for _, path := range append(files, created...) {
			err = errors.Join(err, os.Lchown(path, int(owner.Uid), int(owner.Gid)))
		}
		return err
	}
}

// Owns reports whether a file or directory belongs to the user of this process.
func Owns(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(owner.Uid) == os.Geteuid()
}
