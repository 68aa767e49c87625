// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"time"

	"golang.org/x/sys/windows"
)

// System reads the clocks of this machine.
func System() Moment { return Moment{Wall: time.Now(), Since: windows.DurationSinceBoot()} }
