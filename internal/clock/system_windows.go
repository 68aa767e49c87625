// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package clock

import (
	"time"

	"golang.org/x/sys/windows"
)

func boot() string { return "" }

func sinceBoot() time.Duration { return windows.DurationSinceBoot() }
