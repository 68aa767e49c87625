// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math"
	"math/bits"
)

// distinct estimates how many different hashes it has seen, in 64 bytes: a
// HyperLogLog (Flajolet, Fusy, Gandouet, Meunier 2007) with 64 registers. It is
// exact for one or two, and within some 13 % for many.
type distinct [64]uint8

func (d *distinct) add(hash uint64) {
	i := hash >> 58
	// The bit set at the end bounds the rank where all other bits are zero.
	d[i] = max(d[i], uint8(bits.LeadingZeros64(hash<<6|1<<5)+1))
}

func (d *distinct) merge(o *distinct) {
	for i, rank := range o {
		d[i] = max(d[i], rank)
	}
}

func (d *distinct) count() int64 {
	sum, empty := 0.0, 0
	for _, rank := range d {
		sum += math.Ldexp(1, -int(rank))
		if rank == 0 {
			empty++
		}
	}
	const m = float64(len(d))
	estimate := 0.709 * m * m / sum
	if estimate <= 2.5*m && empty > 0 {
		estimate = m * math.Log(m/float64(empty)) // linear counting, better for few
	}
	return int64(math.Round(estimate))
}
