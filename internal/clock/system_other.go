// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux && !darwin && !windows

package clock

import "time"

// boot names this process, as the time since the machine was booted is not known.
func boot() string { return start.String() }

// sinceBoot counts from a moment before this process: when the machine was booted is not known, and not just now for certain.
func sinceBoot() time.Duration { return time.Hour + time.Since(start) }
