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

var bootID = sync.OnceValue(func() string {
	id, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it, both clocks must do
	return strings.TrimSpace(string(id))
})

// System reads the clocks of this machine.
func System() Moment {
	m := Moment{Wall: time.Now(), Boot: bootID()}
	var since unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &since) == nil {
		m.Since = time.Duration(since.Nano())
	}
	return m
}
