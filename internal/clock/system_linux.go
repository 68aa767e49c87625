// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var boot = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, both clocks must do
	return strings.TrimSpace(string(id))
})

func sinceBoot() time.Duration {
	var since unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &since) // each kernel since 2.6.39 has it
	return time.Duration(since.Nano())
}
