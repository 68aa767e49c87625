// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

const (
	// longestLine is the longest line that is parsed, in bytes. Longer ones count as
	// malformed.
	longestLine = 256 << 10
	// openingSize is how much of a log is read to find the path of the feed, in bytes.
	openingSize = 4 << 20
)

// accessLog reads a log line by line. Its memory does not depend on the log's length.
type accessLog struct {
	lines *bufio.Reader
	taken *counter // bytes read, as stored, compressed or not
}

// counter counts the bytes that are read through it.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// openLog opens a log, which may be compressed with gzip (RFC 1952 section 2.3.1) and
// may consist of several gzip members.
func openLog(r io.Reader) (*accessLog, error) {
	l := &accessLog{taken: &counter{from: r}}
	buffered := bufio.NewReaderSize(l.taken, longestLine)
	magic, err := buffered.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		l.lines = buffered
		return l, nil
	}
	plain, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	l.lines = bufio.NewReaderSize(plain, longestLine)
	return l, nil
}

// head returns the beginning of the log without consuming it.
func (l *accessLog) head() ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(l.lines, openingSize))
	if err != nil {
		return nil, err
	}
	l.lines = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), l.lines), longestLine)
	return head, nil
}

// next returns the next line without its line end, valid until the next call. It returns
// nil without an error for a line that is too long, skips empty lines, and returns
// [io.EOF] at the end.
func (l *accessLog) next() ([]byte, error) {
	for {
		line, long, err := l.lines.ReadLine()
		for more := long; more && err == nil; {
			_, more, err = l.lines.ReadLine()
		}
		switch {
		case long && (err == nil || errors.Is(err, io.EOF)):
			return nil, nil
		case err != nil || len(line) > 0:
			return line, err
		}
	}
}
