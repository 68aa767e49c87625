// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version

import "github.com/feedpollard/pollard/internal/httpfield"

// Coding is a content coding (RFC 9110 section 8.4.1).
type Coding int

// The content codings, the smaller result first. Zstandard makes feeds no smaller than gzip does,
// and Brotli a tenth, for which each version would be compressed and held twice.
const (
	Gzip Coding = iota
	Identity

	codings = 2
)

var names = [codings]string{"gzip", "identity"}

// String returns the name of the coding in header fields.
func (c Coding) String() string { return names[c] }

// CodingOf returns the coding with a name; Identity if it is unknown.
func CodingOf(name string) Coding {
	if name == names[Gzip] {
		return Gzip
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

// Best returns the coding of a response: gzip, if there is that and it weighs no less than identity.
func (p Preference) Best(gzip bool) Coding {
	if gzip && p[Gzip] > 0 && p[Gzip] >= p[Identity] {
		return Gzip
	}
	return Identity
}
