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

// ParseSize parses a positive number of bytes with a unit, such as 64MiB.
func ParseSize(text string) (int64, error) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return 0, fmt.Errorf("%q has no unit: expected one such as %sMiB", text, text)
	}
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > math.MaxInt64 {
		return 0, fmt.Errorf("%q is not a size: expected one such as 512KiB, 64MiB or 1GB", text)
	}
	return int64(n), nil
}

// ParsePercentage parses a percentage such as 10%, or 0. It returns a fraction from 0 to 1.
func ParsePercentage(text string) (float64, error) {
	bad := fmt.Errorf("%q is not a percentage: expected 0 or one from 0%% to 100%%, such as 10%%", text)
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
