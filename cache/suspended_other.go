// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package cache

import "time"

// Suspended is how long the machine has been suspended, as far as that is known
// here: monotonic clocks of other systems count it, or it is unknown.
func Suspended() time.Duration { return 0 }
