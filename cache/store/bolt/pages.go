// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
)

// What bbolt writes of a page before what is in it: its number (8 bytes), its kind (2),
// how many elements it has (2), and how many pages follow that belong to it (4). Elements
// are as long. All numbers are in the machine's order.
const (
	headerSize   = 16
	elementSize  = 16
	kindBranch   = 1
	kindLeaf     = 2
	kindFreelist = 16
	isBucket     = 1 // of an element
	metaSize     = 64
	metaMagic    = 0xED0CDAED
	noFreelist   = ^uint64(0)
	maxDepth     = 64 // of a tree: one with four children a page would fill any disk
)

// pages are those of a file, while they are checked.
type pages struct {
	file io.ReaderAt
	size int64    // of one
	end  uint64   // there are none from here on
	seen []uint64 // a bit for each: something leads there
}

// checkPages checks how the pages of a file hang together, which bbolt believes: where one
// bit is wrong it follows a branch to itself for ever, frees the two billion pages
// that one claims to consist of, one by one, or writes a page far behind the end of any
// disk. What is in the pages of feeds is not looked at: it is sealed.
func checkPages(file io.ReaderAt, size int) error {
	p := &pages{file: file, size: int64(size)}
	root, free, err := p.meta()
	if err != nil {
		return err
	}
	p.seen = make([]uint64, p.end/64+1)
	if err := p.tree(root, true, 0); err != nil {
		return err
	}
	if free == noFreelist {
		return nil
	}
	return p.freelist(free)
}

// meta reads the last of the two pages that say where all begins.
func (p *pages) meta() (root, free uint64, err error) {
	var last uint64
	for i := range int64(2) {
		b := make([]byte, metaSize)
		if _, err := p.file.ReadAt(b, i*p.size+headerSize); err != nil {
			return 0, 0, err
		}
		sum := fnv.New64a()
		_, _ = sum.Write(b[:metaSize-8])
		at := binary.NativeEndian.Uint64(b[48:])
		if binary.NativeEndian.Uint32(b) != metaMagic || sum.Sum64() != binary.NativeEndian.Uint64(b[56:]) || at < last {
			continue
		}
		last, root, free, p.end = at, binary.NativeEndian.Uint64(b[16:]), binary.NativeEndian.Uint64(b[32:]), binary.NativeEndian.Uint64(b[40:])
	}
	// bbolt has opened the file, so one of them is whole, and says what it was told to.
	return root, free, nil
}

// page is what the header of one says.
type page struct {
	kind  uint16
	count int
	bytes int64 // with those that belong to it
}

// enter reads the header of a page to which something leads. Nothing else may.
func (p *pages) enter(id uint64) (page, error) {
	var b [headerSize]byte
	if id < 2 || id >= p.end {
		return page{}, fmt.Errorf("%w: there is no page %d", errDamaged, id)
	}
	if _, err := p.file.ReadAt(b[:], int64(id)*p.size); err != nil {
		return page{}, fmt.Errorf("%w: page %d: %w", errDamaged, id, err)
	}
	more := uint64(binary.NativeEndian.Uint32(b[12:]))
	if binary.NativeEndian.Uint64(b[:]) != id || more >= p.end-id {
		return page{}, fmt.Errorf("%w: the header of page %d", errDamaged, id)
	}
	for n := id; n <= id+more; n++ {
		if err := p.mark(n); err != nil {
			return page{}, err
		}
	}
	return page{
		kind: binary.NativeEndian.Uint16(b[8:]), count: int(binary.NativeEndian.Uint16(b[10:])), bytes: int64(more+1) * p.size,
	}, nil
}

func (p *pages) mark(id uint64) error {
	if word, bit := &p.seen[id/64], uint64(1)<<(id%64); *word&bit == 0 {
		*word |= bit
		return nil
	}
	return fmt.Errorf("%w: page %d is in two places", errDamaged, id)
}

// tree checks the pages of a bucket. The top one has the buckets of a store in it, which have none.
func (p *pages) tree(id uint64, top bool, depth int) error {
	at, err := p.enter(id)
	if err != nil {
		return err
	}
	switch {
	case depth == maxDepth || at.kind != kindBranch && at.kind != kindLeaf || int64(headerSize+at.count*elementSize) > at.bytes:
		return fmt.Errorf("%w: page %d is no part of a tree", errDamaged, id)
	case at.kind == kindLeaf && !top:
		return nil
	}
	b := make([]byte, at.bytes)
	if _, err := p.file.ReadAt(b, int64(id)*p.size); err != nil {
		return fmt.Errorf("%w: page %d: %w", errDamaged, id, err)
	}
	for i := range at.count {
		element := b[headerSize+i*elementSize:]
		next, nested := binary.NativeEndian.Uint64(element[8:]), top
		if at.kind == kindLeaf {
			// A bucket: its first page, or 0 where it is small enough to stand here.
			value := uint64(binary.NativeEndian.Uint32(element[4:])) + uint64(binary.NativeEndian.Uint32(element[8:]))
			if binary.NativeEndian.Uint32(element) != isBucket || value+8 > uint64(len(element)) {
				return fmt.Errorf("%w: element %d of page %d", errDamaged, i, id)
			}
			if next, nested = binary.NativeEndian.Uint64(element[value:]), false; next == 0 {
				continue
			}
		}
		if err := p.tree(next, nested, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// freelist checks that what is to be written next is free.
func (p *pages) freelist(id uint64) error {
	at, err := p.enter(id)
	if err != nil {
		return err
	}
	if at.kind != kindFreelist {
		return fmt.Errorf("%w: page %d does not list free ones", errDamaged, id)
	}
	b := make([]byte, at.bytes)
	if _, err := p.file.ReadAt(b, int64(id)*p.size); err != nil {
		return fmt.Errorf("%w: page %d: %w", errDamaged, id, err)
	}
	list, count := b[headerSize:], uint64(at.count)
	if count == 0xFFFF { // then it stands in front of them
		count, list = binary.NativeEndian.Uint64(list), list[8:]
	}
	if count > uint64(len(list)/8) {
		return fmt.Errorf("%w: %d free pages", errDamaged, count)
	}
	for i := range count {
		free := binary.NativeEndian.Uint64(list[8*i:])
		if free < 2 || free >= p.end {
			return fmt.Errorf("%w: there is no page %d to be free", errDamaged, free)
		}
		if err := p.mark(free); err != nil {
			return err
		}
	}
	return nil
}
