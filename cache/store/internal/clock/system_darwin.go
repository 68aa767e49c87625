// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

var bootID = sync.OnceValue(func() string {
	id, _ := unix.Sysctl("kern.bootsessionuuid") // without it, both clocks must do
	return id
})

// System reads the clocks of this machine. Here CLOCK_MONOTONIC counts sleep; the clock of
// package time does not.
func System() Moment {
	m := Moment{Wall: time.Now(), Boot: bootID()}
	var since unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &since) == nil {
		m.Since = time.Duration(since.Nano())
	}
	return m
}
