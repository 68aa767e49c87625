// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package figures is what processes count and a store adds up, so that it outlives
// them and is the same whichever of several nodes has counted it: requests and bytes
// by day, polls by origin, what readers do.
//
// A [Figure] is numbers under a key. What has been counted since the last time is
// added in batches, each of them once however often it is tried (batch.go). Figures
// merge without being understood: a store, or an older node, adds up what a newer one
// counts.
package figures

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Kind says what a figure counts. It is stored: a kind never changes its meaning, and
// the places in its numbers never change theirs. New numbers are appended.
type Kind byte

// The kinds of figures. Keys are described where they are made.
const (
	Day    Kind = 'd' // traffic by day
	Origin Kind = 'o' // traffic by origin
	Feed   Kind = 'f' // requests by feed
	Family Kind = 'a' // requests by feed and User-Agent family
	Reader Kind = 'r' // requests by feed and reader
	Tally  Kind = 't' // readers counted by feed

	sender Kind = 'n' // the last batch of a node
	seed   Kind = 's' // of hashes
)

// Ref names a figure.
type Ref struct {
	Kind Kind
	Key  string
}

// Figure is numbers that several nodes may count.
type Figure struct {
	Ref
	Counts []int64 // of two figures, the sums are taken
	Peaks  []int64 // the greater ones; 0 is none, and none is below 0. The first is how recent the figure is.
	Bits   []byte  // the union
	Label  []byte  // that of the more recent figure
}

// Recent is how recent a figure is, 0 where that is not known.
func (f *Figure) Recent() int64 {
	if len(f.Peaks) == 0 {
		return 0
	}
	return f.Peaks[0]
}

// Merge adds another figure. Nothing of the other one is shared afterwards, apart from its label.
func (f *Figure) Merge(o *Figure) {
	if len(f.Label) == 0 || len(o.Label) > 0 && o.Recent() >= f.Recent() {
		f.Label = o.Label
	}
	f.Counts = grown(f.Counts, len(o.Counts))
	for i, n := range o.Counts {
		f.Counts[i] += n
	}
	f.Peaks = grown(f.Peaks, len(o.Peaks))
	for i, n := range o.Peaks {
		f.Peaks[i] = max(f.Peaks[i], n)
	}
	f.Bits = grown(f.Bits, len(o.Bits))
	for i, b := range o.Bits {
		f.Bits[i] |= b
	}
}

// grown is a list with at least n elements.
func grown[E any](list []E, n int) []E {
	if len(list) >= n {
		return list
	}
	next := make([]E, n)
	copy(next, list)
	return next
}

// layout is the first byte of an encoded figure.
const layout = 1

var (
	errDamaged = errors.New("damaged figure")
	// errNewer keeps an older node from taking a figure that it cannot read for none.
	errNewer = errors.New("figures are written by a newer Pollard: upgrade this node")
)

// encode writes a figure without its name: layout, numbers as varints after how many
// they are, bits as runs of zeros with what follows them, and the label to the end.
func (f *Figure) encode() []byte {
	v := make([]byte, 0, 16+len(f.Counts)+len(f.Peaks)+len(f.Bits)/8+len(f.Label))
	v = append(v, layout)
	for _, list := range [...][]int64{f.Counts, f.Peaks} {
		v = binary.AppendUvarint(v, uint64(len(list)))
		for _, n := range list {
			v = binary.AppendVarint(v, n)
		}
	}
	v = binary.AppendUvarint(v, uint64(len(f.Bits)))
	run := uint64(0)
	for _, b := range f.Bits {
		if b == 0 {
			run++
			continue
		}
		v = append(binary.AppendUvarint(v, run), b)
		run = 0
	}
	if run > 0 {
		v = binary.AppendUvarint(v, run)
	}
	return append(v, f.Label...)
}

// Decode reads a figure as it is stored. It copies everything out of v.
func Decode(ref Ref, v []byte) (Figure, error) {
	f := Figure{Ref: ref}
	switch {
	case len(v) == 0 || v[0] < layout:
		return f, fmt.Errorf("figure %c: %w", ref.Kind, errDamaged)
	case v[0] > layout:
		return f, errNewer
	}
	r := reader{rest: v[1:]}
	f.Counts, f.Peaks = r.numbers(), r.numbers()
	if n := r.length(maxBits); n > 0 {
		f.Bits = make([]byte, n)
		for at := uint64(0); at < n && !r.failed; at++ {
			if at += r.length(n - at); at < n {
				f.Bits[at] = r.octet()
			}
		}
	}
	if r.failed {
		return f, fmt.Errorf("figure %c: %w", ref.Kind, errDamaged)
	}
	f.Label = append([]byte(nil), r.rest...)
	return f, nil
}

// The bounds of what is read, far above what anybody writes.
const (
	maxNumbers = 1 << 12
	maxBits    = 1 << 16
)

// reader reads what encode wrote.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) length(most uint64) uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 || n > most {
		r.failed = true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) octet() byte {
	if len(r.rest) == 0 {
		r.failed = true
		return 0
	}
	b := r.rest[0]
	r.rest = r.rest[1:]
	return b
}

func (r *reader) numbers() []int64 {
	count := r.length(maxNumbers)
	if count == 0 {
		return nil
	}
	list := make([]int64, count)
	for i := range list {
		n, size := binary.Varint(r.rest)
		if size <= 0 {
			r.failed = true
			return nil
		}
		list[i], r.rest = n, r.rest[size:]
	}
	return list
}
