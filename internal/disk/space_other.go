// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !freebsd && !dragonfly && !openbsd && !windows

package disk

import "math"

// Space says that all space is free, as it is not known here.
func Space(string) (free, all uint64) { return math.MaxUint64, 0 }
