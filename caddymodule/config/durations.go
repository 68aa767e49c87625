// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// ParseDuration parses a positive duration in Caddy's form, which is Go's with days.
func ParseDuration(text string) (caddy.Duration, error) {
	d, err := caddy.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: expected a number with a unit, such as 30s, 15m, 2h or 1d", text)
	}
	if d <= 0 {
		return 0, fmt.Errorf("%q is not a positive duration: expected one such as 30s, 15m, 2h or 1d", text)
	}
	return caddy.Duration(d), nil
}

// FormatDuration formats a duration as Go does, without zero units at the end: 1h, not 1h0m0s.
func FormatDuration[D ~int64](d D) string {
	text := time.Duration(d).String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}
