// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version

import "github.com/feedpollard/pollard/internal/httpfield"

// Coding is a content coding (RFC 9110 section 8.4.1, RFC 7932).
type Coding int

// The content codings, the smallest result first. Zstandard makes feeds no smaller than
// gzip does.
const (
	Brotli Coding = iota
	Gzip
	Identity

	codings = 3
)

var names = [codings]string{"br", "gzip", "identity"}

// String returns the name of the coding in header fields.
func (c Coding) String() string { return names[c] }

// CodingOf returns the coding with a name; Identity if it is unknown.
func CodingOf(name string) Coding {
	for c, n := range names {
		if n == name {
			return Coding(c)
		}
	}
	return Identity
}

// Preference is the weight of each coding in a request; 0: not acceptable.
type Preference [codings]int

// PreferenceOf reads the lines of Accept-Encoding (RFC 9110 section 12.5.3). If nothing is
// acceptable, identity is: a reader that refuses everything is served better by a feed than
// by a 406.
func PreferenceOf(lines []string) (p Preference) {
	if len(lines) == 0 {
		p[Identity] = 1 // no preference: what every reader can read
		return p
	}
	httpfield.Weights(lines, names[:], p[:])
	return p
}

// Best returns the available coding with the greatest weight, and the smallest of several.
func (p Preference) Best(available func(c Coding) bool) Coding {
	best, weight := Identity, 0
	for c, w := range p {
		if w > weight && available(Coding(c)) {
			best, weight = Coding(c), w
		}
	}
	return best
}
