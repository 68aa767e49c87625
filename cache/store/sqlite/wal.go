// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// The write-ahead log, as https://sqlite.org/fileformat2.html#the_write_ahead_log describes it.
const (
	walHeader   = 32
	frameHeader = 24
	walMagic    = 0x377f0682 // or one more: sums are of big-endian numbers
)

// walDamaged reports whether transactions that were durable are missing in the write-ahead log of a file. SQLite itself takes damage
// for the end of the log, and drops what follows: polls that were granted would be granted again. After a crash the frames of one
// transaction, the last, may be incomplete.
//
// The index of the log, which a killed process leaves, says how many frames there were. Without it, as after a power cut, damage of the
// last transaction and a log that was cut off look as a crash does.
func walDamaged(path string) (bool, error) {
	index := readWalIndex(path + "-shm")
	f, err := os.Open(path + "-wal")
	if errors.Is(err, fs.ErrNotExist) {
		return index.frames > 0, nil
	} else if err != nil {
		return false, err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 1<<20)
	header := make([]byte, walHeader)
	if _, err := io.ReadFull(r, header); err != nil {
		return index.frames > 0, end(err)
	}
	magic, size := binary.BigEndian.Uint32(header), binary.BigEndian.Uint32(header[8:])
	if magic&^1 != walMagic || size < 512 || size > 65536 {
		return true, nil
	}
	order := binary.ByteOrder(binary.LittleEndian)
	if magic&1 != 0 {
		order = binary.BigEndian
	}
	sum := walSum{order: order}
	if sum.add(header[:24]); !sum.is(header[24:]) {
		return true, nil
	}
	if string(header[16:24]) != index.salt { // the index is of an earlier use of the log
		index.frames = 0
	}
	frame, whole, n, durable, commits := make([]byte, frameHeader+int(size)), true, 0, 0, 0
	for {
		if _, err := io.ReadFull(r, frame); err != nil {
			return durable < index.frames, end(err)
		}
		if string(frame[8:16]) != string(header[16:24]) { // of an earlier use of the log, or damaged
			whole = false
			continue
		}
		if sum.add(frame[:8]); whole {
			sum.add(frame[frameHeader:])
			whole = sum.is(frame[16:])
		}
		n++
		switch commit := binary.BigEndian.Uint32(frame[4:]) != 0; {
		case commit && whole:
			durable = n
		case commit:
			if commits++; commits > 1 {
				return true, nil
			}
		}
	}
}

// walIndex is what the index of a write-ahead log says, as https://sqlite.org/walformat.html#the_wal_index_header describes it.
type walIndex struct {
	frames int // of whole transactions
	salt   string
}

// readWalIndex reads the index of a write-ahead log, if it is whole.
func readWalIndex(path string) (index walIndex) {
	const size = 48
	f, err := os.Open(path)
	if err != nil {
		return index
	}
	defer f.Close()
	header := make([]byte, 2*size) // and its copy
	if _, err := io.ReadFull(f, header); err != nil || header[12] == 0 || string(header[:size]) != string(header[size:]) {
		return index
	}
	return walIndex{int(binary.NativeEndian.Uint32(header[16:])), string(header[32:40])}
}

// end returns nil for the end of a file.
func end(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return nil
	}
	return err
}

// walSum is the running sum of a write-ahead log.
type walSum struct {
	order binary.ByteOrder
	a, b  uint32
}

// add adds bytes, whose number is a multiple of eight.
func (s *walSum) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		s.a += s.order.Uint32(data) + s.b
		s.b += s.order.Uint32(data[4:]) + s.a
	}
}

// is compares the sum with one that was written.
func (s *walSum) is(written []byte) bool {
	return binary.BigEndian.Uint32(written) == s.a && binary.BigEndian.Uint32(written[4:]) == s.b
}
