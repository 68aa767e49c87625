// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// ParseSize reads a positive number of bytes.
func ParseSize(text string) (int64, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return 0, fmt.Errorf("%q has no unit: expected one such as %sMiB", text, text)
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is no size: expected one such as 512KiB, 64MiB or 1GB", text)
	}
	return int64(n), nil
}

// ParsePercentage reads "10%" or "0" as a fraction.
func ParsePercentage(text string) (float64, error) {
	bad := fmt.Errorf("%q is no percentage: expected 0 or one from 0%% to 100%%, such as 10%%", text)
	if text == "0" {
		return 0, nil
	}
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, bad
	}
	percent, err := strconv.ParseFloat(number, 64)
	if err != nil || !(percent >= 0) || percent > 100 {
		return 0, bad
	}
	return percent / 100, nil
}
