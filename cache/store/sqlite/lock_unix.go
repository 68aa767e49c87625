// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sqlite

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the lock of a file and returns what gives it back. SQLite itself would let
// two processes in, whose clocks and memories differ.
func lock(path string, wait time.Duration) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const pause = 50 * time.Millisecond
	for ; ; wait -= pause {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || wait <= 0 {
			break
		}
		time.Sleep(pause)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
