// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package clock

import "time"

var began = time.Now()

// System reads the clocks of this machine. The time since it was booted is not known, so
// the time since the process began stands for it.
func System() Moment { return Moment{Wall: time.Now(), Since: time.Since(began), Boot: began.String()} }
