// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"os"
	"time"
)

// lock takes the lock of a file, for which it waits some time, and returns what gives it back. SQLite
// itself would let two processes in, whose clocks and memories differ.
func lock(path string, wait time.Duration) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const pause = 50 * time.Millisecond
	for err = tryLock(file); errors.Is(err, errLocked) && wait > 0; err = tryLock(file) {
		time.Sleep(pause)
		wait -= pause
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
