// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"time"
)

// Join joins several logs, each plain or gzip. It sorts them by the time of their first
// request, because rotated logs may be given in any order.
func Join(logs ...io.Reader) (io.Reader, error) {
	type part struct {
		from  time.Time
		lines io.Reader
	}
	parts := make([]part, 0, len(logs))
	for _, log := range logs {
		l, err := openLog(log)
		if err != nil {
			return nil, err
		}
		head, err := l.lines.Peek(longestLine)
		if len(head) == 0 && err != nil && err != io.EOF {
			return nil, err
		}
		parts = append(parts, part{firstTime(head), l.lines})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return a.from.Compare(b.from) })
	var all []io.Reader
	for _, p := range parts {
		all = append(all, p.lines, strings.NewReader("\n")) // a last line may have no end
	}
	return io.MultiReader(all...), nil
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
