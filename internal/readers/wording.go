// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"fmt"
	"time"
)

const day = 24 * time.Hour

// span describes a duration in words that follow "every": "4 minutes", "hour", "12
// hours", "3 days".
func span(d time.Duration) string {
	for _, unit := range [...]struct {
		length, below time.Duration
		name          string
	}{
		{time.Second, 90 * time.Second, "second"},
		{time.Minute, 90 * time.Minute, "minute"},
		{time.Hour, 36 * time.Hour, "hour"},
	} {
		if d < unit.below {
			return counted(max(d.Round(unit.length)/unit.length, 1), unit.name)
		}
	}
	return counted(d.Round(day)/day, "day")
}

func counted(n time.Duration, unit string) string {
	switch {
	case n == 1:
		return unit
	case n == 60 && unit == "minute":
		return "hour"
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// rhythm describes how often a feed changes: "monthly", "every 3 days".
func rhythm(d time.Duration) string {
	for _, usual := range [...]struct {
		from, to time.Duration
		name     string
	}{
		{50 * time.Minute, 70 * time.Minute, "hourly"},
		{20 * time.Hour, 28 * time.Hour, "daily"},
		{6 * day, 8 * day, "weekly"},
		{26 * day, 35 * day, "monthly"},
		{330 * day, 400 * day, "yearly"},
	} {
		if usual.from <= d && d <= usual.to {
			return usual.name
		}
	}
	return "every " + span(d)
}
