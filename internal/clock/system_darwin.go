// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var boot = sync.OnceValue(func() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid") // without it, both clocks must do
	return id
})

// sinceBoot reads CLOCK_MONOTONIC, which counts sleep here; the clock of package time does not.
func sinceBoot() time.Duration {
	var since unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &since) // each macOS that Go runs on has it
	return time.Duration(since.Nano())
}
