// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/status"
)

// polls are the last polls of a feed, the oldest first, in pollSize bytes each.
type polls []byte

const (
	maxPolls = 32
	pollSize = 15
)

// resultCodes are the results as they are stored. Their positions must not change.
var resultCodes = [...]status.Result{status.ResultNew, status.ResultUnchanged, status.ResultMoved, status.ResultGone, status.ResultFailed, status.ResultUnsent, status.ResultHeld}

// with returns the polls with one more, without the oldest if there are too many.
func (p polls) with(last status.Poll) polls {
	if len(p) >= maxPolls*pollSize {
		p = p[len(p)-(maxPolls-1)*pollSize:]
	}
	next := make(polls, 0, len(p)+pollSize) // the old ones belong to a published state
	next = append(next, p...)
	next = binary.BigEndian.AppendUint32(next, uint32(last.At.Unix()))
	next = binary.BigEndian.AppendUint16(next, uint16(last.Status))
	next = append(next, byte(max(slices.Index(resultCodes[:], last.Result), 0)))
	next = binary.BigEndian.AppendUint32(next, uint32(min(last.Bytes, 1<<32-1)))
	return binary.BigEndian.AppendUint32(next, uint32(min(time.Duration(last.Took), time.Minute*1000)/time.Millisecond))
}

// All returns the polls in a readable form.
func (p polls) All() []status.Poll {
	list := make([]status.Poll, 0, len(p)/pollSize)
	for ; len(p) >= pollSize; p = p[pollSize:] {
		one := status.Poll{
			At:     time.Unix(int64(binary.BigEndian.Uint32(p)), 0).UTC(),
			Status: int(binary.BigEndian.Uint16(p[4:])),
			Bytes:  int64(binary.BigEndian.Uint32(p[7:])),
			Took:   status.Seconds(binary.BigEndian.Uint32(p[11:])) * status.Seconds(time.Millisecond),
		}
		if code := int(p[6]); code < len(resultCodes) {
			one.Result = resultCodes[code]
		}
		list = append(list, one)
	}
	return list
}
