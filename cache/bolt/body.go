// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/feedpollard/pollard/cache"
)

// A body file, all numbers big-endian:
//
//	8   magic, which ends in the layout
//	32  SHA-256 of everything below
//	16  ID of the feed, so that a file under a wrong name is noticed
//	8   version
//	4   length of the table
//	    table: for each coding, in the order of their names,
//	           2 length of its name, its name, 8 length of its data
//	    data of the codings, in the same order
const (
	bodyMagic  = "PLRDBDY\x01"
	bodyHeader = len(bodyMagic) + sha256.Size + len(cache.ID{}) + 8 + 4
)

// encodeBody writes the file of a body.
func encodeBody(w io.Writer, id cache.ID, body cache.Body) error {
	codings := slices.Sorted(maps.Keys(body.Coded))
	var table []byte
	for _, coding := range codings {
		if len(coding) > math.MaxUint16 {
			return fmt.Errorf("name of a coding has %d bytes", len(coding))
		}
		table = binary.BigEndian.AppendUint16(table, uint16(len(coding)))
		table = append(table, coding...)
		table = binary.BigEndian.AppendUint64(table, uint64(len(body.Coded[coding])))
	}
	if int64(len(table)) > math.MaxUint32 {
		return fmt.Errorf("table of %d codings is too long", len(codings))
	}

	rest := slices.Clone(id[:])
	rest = binary.BigEndian.AppendUint64(rest, body.Version)
	rest = binary.BigEndian.AppendUint32(rest, uint32(len(table)))
	rest = append(rest, table...)
	sum := sha256.New()
	sum.Write(rest)
	for _, coding := range codings {
		sum.Write(body.Coded[coding])
	}

	head := append([]byte(bodyMagic), sum.Sum(nil)...)
	if _, err := w.Write(append(head, rest...)); err != nil {
		return err
	}
	for _, coding := range codings {
		if _, err := w.Write(body.Coded[coding]); err != nil {
			return err
		}
	}
	return nil
}

// decodeBody reads the file of a body, which has size bytes. It allocates no more
// than that, whatever the file says.
func decodeBody(r io.Reader, size int64, id cache.ID) (cache.Body, error) {
	var head [bodyHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return cache.Body{}, fmt.Errorf("%w: header: %w", errDamaged, err)
	}
	magic, rest := head[:len(bodyMagic)], head[len(bodyMagic):]
	want, rest := rest[:sha256.Size], rest[sha256.Size:]
	if string(magic) != bodyMagic {
		return cache.Body{}, fmt.Errorf("%w: not a body of this layout", errDamaged)
	}
	sum := sha256.New()
	sum.Write(rest)
	owner, rest := rest[:len(id)], rest[len(id):]
	if !bytes.Equal(owner, id[:]) {
		return cache.Body{}, fmt.Errorf("%w: body of feed %x", errDamaged, owner)
	}
	body := cache.Body{Version: binary.BigEndian.Uint64(rest), Coded: make(map[string][]byte)}

	left := size - int64(bodyHeader)
	table, err := readPart(r, sum, uint64(binary.BigEndian.Uint32(rest[8:])), &left)
	if err != nil {
		return cache.Body{}, fmt.Errorf("table: %w", err)
	}
	for len(table) > 0 {
		coding, length, after, err := cutEntry(table)
		if err != nil {
			return cache.Body{}, err
		}
		table = after
		// Each coding has memory of its own: who keeps one does not keep them all.
		if body.Coded[coding], err = readPart(r, sum, length, &left); err != nil {
			return cache.Body{}, fmt.Errorf("coding %q: %w", coding, err)
		}
	}
	if left != 0 || !bytes.Equal(sum.Sum(nil), want) {
		return cache.Body{}, fmt.Errorf("%w: the checksum does not match", errDamaged)
	}
	return body, nil
}

// readPart reads n bytes of the left ones and adds them to the sum.
func readPart(r io.Reader, sum hash.Hash, n uint64, left *int64) ([]byte, error) {
	if *left < 0 || n > uint64(*left) || n > math.MaxInt {
		return nil, fmt.Errorf("%w: %d bytes of %d", errDamaged, *left, n)
	}
	part := make([]byte, n)
	if _, err := io.ReadFull(r, part); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	sum.Write(part)
	*left -= int64(n)
	return part, nil
}

// cutEntry takes the first entry off the table.
func cutEntry(table []byte) (coding string, length uint64, rest []byte, err error) {
	if len(table) >= 2 {
		n := 2 + int(binary.BigEndian.Uint16(table))
		if len(table) >= n+8 {
			return string(table[2:n]), binary.BigEndian.Uint64(table[n:]), table[n+8:], nil
		}
	}
	return "", 0, nil, fmt.Errorf("%w: table of codings", errDamaged)
}
