// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"

	"github.com/feedpollard/pollard/httpfield"
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
	var weights [len(preference)]int
	httpfield.Weights(lines, codings[:], weights[:])
	best, bestWeight := identity, 0
	for i := range p.representations {
		r := &p.representations[i]
		if w := weights[r.rank]; w > bestWeight {
			best, bestWeight = r, w
		}
	}
	return best
}

// codings are the names of the codings, in the order of preference.
var codings = func() (names [len(preference)]string) {
	for i := range preference {
		names[i] = preference[i].coding
	}
	return names
}()
