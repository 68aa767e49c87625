// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// A record is kept as two values under the feed's ID, because a reservation
// changes only the small one: at a million feeds those are 96 MB instead of
// 1.2 GB of pages to go through.

// poll is the value in the poll bucket. The first byte of both values is their layout.
type poll struct {
	next    int64  // ms since 1970, see millis
	token   uint64 // of the last grant
	version uint64 // of the body; 0: none
	slot    byte   // where that body is: slotA or slotB; 0: nowhere
}

const (
	pollLayout = 1
	pollSize   = 1 + 1 + 8 + 8 + 8

	metaLayout = 1
)

// schedule is the poll record as the engine knows it.
func (p poll) schedule() cache.Schedule {
	return cache.Schedule{Next: moment(p.next), Token: p.token, Version: p.version}
}

func encodePoll(p poll) []byte {
	v := make([]byte, 0, pollSize)
	v = append(v, pollLayout, p.slot)
	v = binary.BigEndian.AppendUint64(v, uint64(p.next))
	v = binary.BigEndian.AppendUint64(v, p.token)
	return binary.BigEndian.AppendUint64(v, p.version)
}

func decodePoll(v []byte) (poll, error) {
	if len(v) != pollSize || v[0] != pollLayout {
		return poll{}, fmt.Errorf("%w: poll record of %d bytes", errDamaged, len(v))
	}
	p := poll{
		slot:    v[1],
		next:    int64(binary.BigEndian.Uint64(v[2:])),
		token:   binary.BigEndian.Uint64(v[10:]),
		version: binary.BigEndian.Uint64(v[18:]),
	}
	if stored := p.slot == slotA || p.slot == slotB; stored != (p.version != 0) || !stored && p.slot != 0 {
		return poll{}, fmt.Errorf("%w: poll record names version %d in slot %q", errDamaged, p.version, p.slot)
	}
	return p, nil
}

// encodeMeta joins the URL and the memo: layout, length of the URL, URL, memo.
func encodeMeta(url string, memo []byte) []byte {
	v := make([]byte, 0, 1+binary.MaxVarintLen64+len(url)+len(memo))
	v = append(v, metaLayout)
	v = binary.AppendUvarint(v, uint64(len(url)))
	v = append(v, url...)
	return append(v, memo...)
}

// decodeMeta splits a value of the meta bucket without copying it.
func decodeMeta(v []byte) (url, memo []byte, err error) {
	if len(v) < 1 || v[0] != metaLayout {
		return nil, nil, fmt.Errorf("%w: meta record of %d bytes", errDamaged, len(v))
	}
	v = v[1:]
	n, width := binary.Uvarint(v)
	if width <= 0 || n > uint64(len(v)-width) {
		return nil, nil, fmt.Errorf("%w: meta record without its URL", errDamaged)
	}
	v = v[width:]
	return v[:n], v[n:], nil
}

// join makes a record of its two values. Nothing in it refers to meta, which is
// only valid inside its transaction.
func join(id cache.ID, p poll, meta []byte) (cache.Record, error) {
	url, memo, err := decodeMeta(meta)
	if err != nil {
		return cache.Record{}, err
	}
	r := cache.Record{ID: id, Schedule: p.schedule(), URL: string(url)}
	if len(memo) > 0 {
		r.Memo = append([]byte(nil), memo...)
	}
	return r, nil
}

// millis is t in milliseconds since 1970, rounded up: a poll must not become due
// a fraction before its decision. Times beyond the range of an int64, which is
// 292 million years, become its ends. The zero time is among those that fit and
// is zero again after moment.
func millis(t time.Time) int64 {
	switch {
	case !t.Before(time.UnixMilli(math.MaxInt64)):
		return math.MaxInt64
	case !t.After(time.UnixMilli(math.MinInt64)):
		return math.MinInt64
	}
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++
	}
	return ms
}

// moment is the time of ms milliseconds since 1970.
func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
