// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strings"
)

// negotiate picks the representation for a request's Accept-Encoding (RFC 9110
// section 12.5.3): of the codings with the highest weight the smallest one. Where
// nothing is acceptable, identity is sent all the same: a reader that refuses
// everything is served better by a feed than by a 406.
func (p *prepared) negotiate(h http.Header) *representation {
	identity := &p.representations[len(p.representations)-1]
	lines := h["Accept-Encoding"]
	if len(lines) == 0 {
		return identity // no preference: what every reader can read
	}
	best, bestWeight := identity, 0
	for i := range p.representations {
		r := &p.representations[i]
		if w := weight(lines, r.coding); w > bestWeight {
			best, bestWeight = r, w
		}
	}
	return best
}

// weight is what a request gives a coding, in thousandths. Identity is
// acceptable unless it is excluded, but after everything that is named.
func weight(lines []string, coding string) int {
	named, any := -1, -1
	for _, line := range lines {
		for len(line) > 0 {
			var item string
			item, line, _ = strings.Cut(line, ",")
			name, params, _ := strings.Cut(item, ";")
			switch name = strings.TrimSpace(name); {
			case strings.EqualFold(name, coding), coding == codingGzip && strings.EqualFold(name, "x-gzip"):
				named = quality(params)
			case name == "*":
				any = quality(params)
			}
		}
	}
	switch {
	case named >= 0:
		return named
	case any >= 0:
		return any
	case coding == codingIdentity:
		return 1
	}
	return 0
}

// quality reads a weight parameter (RFC 9110 section 12.4.2) in thousandths. What
// cannot be read counts as 1, as though it were not there.
func quality(params string) int {
	params = strings.TrimSpace(params)
	if len(params) < 3 || params[0]|0x20 != 'q' || params[1] != '=' {
		return 1000
	}
	q, scale := 0, 1000
	for i, c := range []byte(params[2:]) {
		switch {
		case i == 0 && (c == '0' || c == '1'):
			q = int(c-'0') * 1000
		case i == 1 && c == '.':
		case i >= 2 && i <= 4 && c >= '0' && c <= '9':
			scale /= 10
			q += int(c-'0') * scale
		default:
			return 1000
		}
	}
	return min(q, 1000)
}
