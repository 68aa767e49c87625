// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
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
		err = windows.LockFileEx(windows.Handle(file.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, new(windows.Overlapped))
		if !errors.Is(err, windows.ERROR_LOCK_VIOLATION) || wait <= 0 {
			break
		}
		time.Sleep(pause)
	}
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
