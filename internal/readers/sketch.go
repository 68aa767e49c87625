// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math"
	"math/bits"
	"sync/atomic"
)

// sketch estimates how many different hashes were added: a HyperLogLog (Flajolet,
// Fusy, Gandouet, Meunier 2007) with a power of 2 of registers, four in each word. It
// is exact for one or two; for many, the standard error is 1.04 divided by the square
// root of the number of registers.
//
// Registers only grow, so add needs no lock. Sketches of the same size can be merged,
// because their hashes are the same in all processes.
type sketch []uint32

func (s sketch) registers() int { return 4 * len(s) }

func (s sketch) register(i int) uint8 { return uint8(atomic.LoadUint32(&s[i/4]) >> (i % 4 * 8)) }

func (s sketch) raise(i int, rank uint8) {
	word, shift := &s[i/4], i%4*8
	for old := atomic.LoadUint32(word); uint8(old>>shift) < rank; old = atomic.LoadUint32(word) {
		atomic.CompareAndSwapUint32(word, old, old&^(0xff<<shift)|uint32(rank)<<shift)
	}
}

func (s sketch) add(hash uint64) {
	index := bits.Len(uint(s.registers())) - 1 // bits that choose the register
	// The bit set at the end bounds the rank if all other bits are zero.
	rank := bits.LeadingZeros64(hash<<index|1<<(index-1)) + 1
	s.raise(int(hash>>(64-index)), uint8(rank))
}

func (s sketch) merge(o sketch) {
	for i := range s.registers() {
		s.raise(i, o.register(i))
	}
}

func (s sketch) count() int64 {
	sum, empty := 0.0, 0
	for i := range s.registers() {
		rank := s.register(i)
		sum += math.Ldexp(1, -int(rank))
		if rank == 0 {
			empty++
		}
	}
	m := float64(s.registers())
	estimate := 0.7213 / (1 + 1.079/m) * m * m / sum
	if estimate <= 2.5*m && empty > 0 {
		estimate = m * math.Log(m/float64(empty)) // linear counting is better for few
	}
	return int64(math.Round(estimate))
}

func (s sketch) clear() {
	for i := range s {
		atomic.StoreUint32(&s[i], 0)
	}
}

// bytes returns the registers, or nil if all are 0.
func (s sketch) bytes() []byte {
	all, sum := make([]byte, s.registers()), 0
	for i := range all {
		all[i] = s.register(i)
		sum += int(all[i])
	}
	if sum == 0 {
		return nil
	}
	return all
}

// mergeBytes merges registers that bytes returned. It ignores those of another size.
func (s sketch) mergeBytes(registers []byte) {
	if len(registers) == s.registers() {
		for i, rank := range registers {
			s.raise(i, rank)
		}
	}
}
