// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package disk asks the operating system about files and file systems: locks between
// processes, free space, and whether a directory is on another machine.
package disk

import (
	"errors"
	"time"

	"github.com/gofrs/flock"
)

// ErrLocked reports that another process has locked a file.
var ErrLocked = errors.New("another process has locked it")

// Lock locks a file, which it creates if necessary, and returns a function that unlocks it.
// If another process has locked it, Lock waits for some time, and then returns [ErrLocked].
func Lock(path string, wait time.Duration) (unlock func() error, err error) {
	lock := flock.New(path)
	const pause = 50 * time.Millisecond
	locked, err := lock.TryLock()
	for ; err == nil && !locked && wait > 0; locked, err = lock.TryLock() {
		time.Sleep(pause)
		wait -= pause
	}
	if err == nil && !locked {
		err = ErrLocked
	}
	if err != nil {
		return nil, err
	}
	return lock.Unlock, nil
}
