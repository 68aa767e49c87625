// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package disk asks the operating system about files and file systems: locks between
// processes, free space, and whether a directory is on another machine.
package disk

import (
	"errors"
	"os"
	"time"
)

// ErrLocked reports that another process has locked a file.
var ErrLocked = errors.New("another process has locked it")

// Lock locks a file, which it creates if necessary, and returns a function that unlocks it.
// If another process has locked it, Lock waits for some time, and then returns [ErrLocked].
func Lock(path string, wait time.Duration) (unlock func() error, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	const pause = 50 * time.Millisecond
	for err = tryLock(file); errors.Is(err, ErrLocked) && wait > 0; err = tryLock(file) {
		time.Sleep(pause)
		wait -= pause
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file.Close, nil
}
