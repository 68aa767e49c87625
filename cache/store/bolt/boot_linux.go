// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// systemBoot is the life of the machine as Linux tells it.
func systemBoot() Boot {
	var ago unix.Timespec
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &ago) != nil {
		return Boot{}
	}
	return Boot{ID: strings.TrimSpace(string(id)), Ago: time.Duration(ago.Nano())}
}
