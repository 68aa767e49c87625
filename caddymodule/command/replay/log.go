// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
)

const (
	// longestLine is the longest line that is parsed, in bytes. Longer ones count as
	// malformed.
	longestLine = 256 << 10
	// openingSize is how much of a log is read to find the path of the feed, in bytes.
	openingSize = 4 << 20
)

// accessLog reads one or more logs line by line. Its memory does not depend on their length.
type accessLog struct {
	opening []byte // the beginning
	lines   *bufio.Reader
}

// openLogs opens logs, each plain or compressed with gzip. They are read in the order of
// their first requests, because rotated logs may be given in any order.
func openLogs(logs []io.Reader) (*accessLog, error) {
	l := &accessLog{}
	type part struct {
		from  time.Time
		lines io.Reader
	}
	parts := make([]part, 0, len(logs))
	for _, log := range logs {
		lines, err := openLog(log)
		if err != nil {
			return nil, err
		}
		head, err := lines.Peek(longestLine)
		if len(head) == 0 && err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		parts = append(parts, part{firstTime(head), lines})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.from.Compare(b.from) })
	var all []io.Reader
	for _, p := range parts {
		all = append(all, p.lines, strings.NewReader("\n")) // a last line may have no end
	}
	joined := io.MultiReader(all...)
	var err error
	l.opening, err = io.ReadAll(io.LimitReader(joined, openingSize))
	l.lines = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(l.opening), joined), longestLine)
	return l, err
}

// openLog opens a log, which may consist of several gzip members (RFC 1952 section 2.3.1).
func openLog(log io.Reader) (*bufio.Reader, error) {
	lines := bufio.NewReaderSize(log, longestLine)
	magic, err := lines.Peek(2)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return lines, nil
	}
	plain, err := gzip.NewReader(lines)
	if err != nil {
		return nil, fmt.Errorf("decompressing: %w", err)
	}
	return bufio.NewReaderSize(plain, longestLine), nil
}

// firstTime returns the time of the first request in head, or the zero time.
func firstTime(head []byte) time.Time {
	for text := range bytes.Lines(head) {
		if l, err := parse(bytes.TrimRight(text, "\r\n")); err == nil {
			return l.Time
		}
	}
	return time.Time{}
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
