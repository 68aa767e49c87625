// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"math"
	"strconv"
	"strings"
)

// Weights reads the weights of codings in an Accept-Encoding field (RFC 9110 section
// 12.5.3), in thousandths; 0 excludes a coding. Identity is acceptable unless it is
// excluded, with the least weight if it is not named. Malformed weights are ignored, so
// the coding has 1000.
func Weights(lines []string, codings []string, weights []int) {
	const unnamed = -1
	for i := range weights {
		weights[i] = unnamed
	}
	others := unnamed // the weight of "*"
	for _, line := range lines {
		for len(line) > 0 {
			var item string
			item, line, _ = strings.Cut(line, ",")
			name, params, _ := strings.Cut(item, ";")
			name = strings.TrimSpace(name)
			if name == "*" {
				others = quality(params)
			} else if i := indexOf(codings, name); i >= 0 {
				weights[i] = quality(params)
			}
		}
	}
	for i := range weights {
		switch {
		case weights[i] != unnamed:
		case others != unnamed:
			weights[i] = others
		case codings[i] == "identity":
			weights[i] = 1
		default:
			weights[i] = 0
		}
	}
}

func indexOf(codings []string, name string) int {
	if len(name) == len("x-gzip") && strings.EqualFold(name, "x-gzip") {
		name = "gzip" // RFC 9110 section 8.4.1.3
	}
	for i, coding := range codings {
		if len(name) == len(coding) && strings.EqualFold(name, coding) {
			return i
		}
	}
	return -1
}

// quality reads a weight parameter (RFC 9110 section 12.4.2) in thousandths.
func quality(params string) int {
	params = strings.TrimSpace(params)
	if len(params) < 3 || params[0]|0x20 != 'q' || params[1] != '=' {
		return 1000
	}
	q, err := strconv.ParseFloat(params[2:], 64)
	if err != nil || !(q >= 0 && q <= 1) {
		return 1000
	}
	return int(math.Round(q * 1000))
}
