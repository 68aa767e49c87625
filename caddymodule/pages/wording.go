// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/status"
)

// short writes a number for the side of a chart: "25k".
func short(n int64) string {
	value, unit := humanize.ComputeSI(float64(n))
	return humanize.Ftoa(value) + unit
}

// took writes how long a poll took: "340 ms".
func took(s status.Seconds) string {
	d := time.Duration(s)
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
