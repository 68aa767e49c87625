// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"golang.org/x/sys/unix"
)

// Suspended is how long the machine has been suspended since it was booted: what
// CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does not.
func Suspended() time.Duration {
	var boot, monotonic unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) != nil || unix.ClockGettime(unix.CLOCK_MONOTONIC, &monotonic) != nil {
		return 0
	}
	return time.Duration(boot.Nano() - monotonic.Nano()).Truncate(time.Millisecond)
}
