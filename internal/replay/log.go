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
	// longestLine is the longest line that is read, in bytes. Longer ones are no
	// lines of an access log, and count as malformed.
	longestLine = 256 << 10
	// opening is how much of a log is looked at for the path of the feed.
	opening = 4 << 20
)

// accessLog is a log that is read line by line. Its memory does not depend on
// the log's length.
type accessLog struct {
	lines *bufio.Reader
	taken *counter // of the bytes as they lie there, compressed or not
}

// counter counts what is read through it.
type counter struct {
	from io.Reader
	n    int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	c.n += int64(n)
	return n, err
}

// openLog reads a log that is plain or, by its first bytes (RFC 1952 section
// 2.3.1), gzip. Logs that were compressed one by one and joined are one log.
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

// head reads the beginning of the log, which next gives again.
func (l *accessLog) head() ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(l.lines, opening))
	if err != nil {
		return nil, err
	}
	l.lines = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(head), l.lines), longestLine)
	return head, nil
}

// next is the next line without its end; nil, without an error, is one that is
// too long. Empty ones are left out: they say nothing, and end some logs. The last error
// is [io.EOF].
func (l *accessLog) next() ([]byte, error) {
	line, err := l.lines.ReadSlice('\n')
	for err == nil && len(bytes.TrimRight(line, "\r\n")) == 0 {
		line, err = l.lines.ReadSlice('\n')
	}
	switch {
	case err == nil:
		return line[:len(line)-1], nil
	case errors.Is(err, bufio.ErrBufferFull):
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = l.lines.ReadSlice('\n')
		}
		if errors.Is(err, io.EOF) {
			err = nil // the next call meets it again
		}
		return nil, err
	case errors.Is(err, io.EOF) && len(line) > 0:
		return line, nil // a last line without an end
	}
	return nil, err
}
