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
	weights := weigh(lines)
	best, bestWeight := identity, 0
	for i := range p.representations {
		r := &p.representations[i]
		if w := weights[r.rank]; w > bestWeight {
			best, bestWeight = r, w
		}
	}
	return best
}

// weigh reads what a request gives each coding, in thousandths, in the order of
// preference. Identity is acceptable unless it is excluded, but after everything
// that is named.
func weigh(lines []string) (weights [len(preference)]int) {
	const unnamed = -1
	for i := range weights {
		weights[i] = unnamed
	}
	others := unnamed // what "*" gives
	for _, line := range lines {
		for len(line) > 0 {
			var item string
			item, line, _ = strings.Cut(line, ",")
			name, params, _ := strings.Cut(item, ";")
			name = strings.TrimSpace(name)
			if name == "*" {
				others = quality(params)
			} else if rank := rankOf(name); rank >= 0 {
				weights[rank] = quality(params)
			}
		}
	}
	for i := range weights {
		switch {
		case weights[i] != unnamed:
		case others != unnamed:
			weights[i] = others
		case preference[i].coding == codingIdentity:
			weights[i] = 1
		default:
			weights[i] = 0
		}
	}
	return weights
}

// rankOf is the place of a coding in preference; -1: it is none of ours.
func rankOf(name string) int {
	if len(name) == len("x-gzip") && strings.EqualFold(name, "x-gzip") {
		name = codingGzip // RFC 9110 section 8.4.1.3
	}
	for i := range preference {
		if len(name) == len(preference[i].coding) && strings.EqualFold(name, preference[i].coding) {
			return i
		}
	}
	return -1
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
