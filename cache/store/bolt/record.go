// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// A feed is two values under its ID, because its polls change only the small one: at
// a million feeds those are a tenth of all pages. The first byte of each is its layout.
// Values of the first layout are read as they are; those of this one are sealed.

const (
	bareLayout   = 1
	sealedLayout = 2
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealSize is how many bytes a seal has.
const sealSize = crc32.Size

// seal appends a checksum of a value and its key. bbolt has none for what is in its
// pages: a flipped bit could have a feed polled in a hundred years, or at another URL.
func seal(key, value []byte) []byte {
	return binary.BigEndian.AppendUint32(value, checksum(key, value))
}

// unseal returns the value that was sealed under a key.
func unseal(key, sealed []byte) (value []byte, ok bool) {
	end := len(sealed) - sealSize
	if end < 0 {
		return nil, false
	}
	value = sealed[:end]
	return value, binary.BigEndian.Uint32(sealed[end:]) == checksum(key, value)
}

func isSealed(key, value []byte) bool {
	_, ok := unseal(key, value)
	return ok
}

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

// unwrap returns what a record has behind its layout.
func unwrap(id store.ID, v []byte) ([]byte, bool) {
	switch {
	case len(v) == 0:
		return nil, false
	case v[0] == sealedLayout:
		value, ok := unseal(id[:], v)
		return value[min(1, len(value)):], ok
	}
	return v[1:], v[0] == bareLayout
}

// The flags of a feed.
const (
	flagConfigured = 1 << iota
	flagHere
	flagSuffix // the domain is the end of the host's name: its length is stored
)

// states have the numbers under which they are stored.
var states = []store.State{store.StateCold, store.StateFresh, store.StateFailing, store.StateGone, store.StateWaiting}

// encodeFeed writes: layout, flags, moments and name of the body's file as fixed
// numbers; the others as varints; state and host; and the facts to the end.
func encodeFeed(id store.ID, f *schedule.Feed) []byte {
	v := make([]byte, 0, 100+len(f.Host.Name)+len(f.Facts))
	suffix := f.Host.Domain != "" && strings.HasSuffix(f.Host.Name, f.Host.Domain)
	v = append(v, sealedLayout, bit(f.Configured, flagConfigured)|bit(f.Here, flagHere)|bit(suffix, flagSuffix))
	for _, n := range [...]uint64{uint64(f.Next), uint64(f.Polled), uint64(f.Asked), f.File} {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	for _, n := range [...]uint64{uint64(f.Token), f.Version, uint64(f.Size), uint64(f.Hold), uint64(f.Host.Spacing)} {
		v = binary.AppendUvarint(v, n)
	}
	state := slices.Index(states, f.State)
	v = binary.AppendUvarint(v, uint64(state+1))
	if state < 0 {
		v = appendText(v, string(f.State))
	}
	v = appendText(v, f.Host.Name)
	if suffix {
		v = binary.AppendUvarint(v, uint64(len(f.Host.Domain)))
	} else {
		v = appendText(v, f.Host.Domain)
	}
	return seal(id[:], append(v, f.Facts...))
}

func bit(set bool, flag byte) byte {
	if set {
		return flag
	}
	return 0
}

func appendText(v []byte, text string) []byte {
	return append(binary.AppendUvarint(v, uint64(len(text))), text...)
}

var errRecord = errors.New("damaged record")

// decodeFeed reads what encodeFeed wrote. It copies everything out of v.
func decodeFeed(id store.ID, v []byte, f *schedule.Feed) error {
	v, ok := unwrap(id, v)
	if !ok || len(v) == 0 {
		return errRecord
	}
	flags := v[0]
	r := reader{rest: v[1:]}
	*f = schedule.Feed{
		Configured: flags&flagConfigured != 0, Here: flags&flagHere != 0,
		Next: schedule.Time(r.fixed()), Polled: schedule.Time(r.fixed()), Asked: schedule.Time(r.fixed()), File: r.fixed(),
		Token: store.Token(r.number()), Version: r.number(), Size: int64(r.number()), Hold: time.Duration(r.number()),
	}
	f.Host.Spacing = time.Duration(r.number())
	if state := r.number(); state == 0 {
		f.State = store.State(r.text())
	} else if state <= uint64(len(states)) {
		f.State = states[state-1]
	} else {
		return errRecord
	}
	f.Host.Name = string(r.text())
	if flags&flagSuffix != 0 {
		n := r.number()
		if n > uint64(len(f.Host.Name)) {
			return errRecord
		}
		f.Host.Domain = f.Host.Name[uint64(len(f.Host.Name))-n:]
	} else {
		f.Host.Domain = string(r.text())
	}
	if len(r.rest) > 0 {
		f.Facts = slices.Clone(r.rest)
	}
	if r.short || f.Size < 0 || (f.Version != 0) != (f.File != 0) {
		return errRecord
	}
	return nil
}

// reader reads a value from its front.
type reader struct {
	rest  []byte
	short bool // there was less than what was asked for
}

func (r *reader) take(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.rest, r.short = nil, true
		return nil
	}
	taken := r.rest[:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) fixed() uint64 {
	if v := r.take(8); v != nil {
		return binary.BigEndian.Uint64(v)
	}
	return 0
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.rest, r.short = nil, true
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) text() []byte { return r.take(r.number()) }

// presumed takes the place of a record that cannot be read: the feed may have been
// polled just now.
func presumed(now schedule.Time) *schedule.Feed {
	return &schedule.Feed{
		Next: now.Add(time.Hour), Hold: time.Hour, Polled: now, Asked: now, State: store.StateCold,
	}
}

// encodeText writes: layout, URL and its length, memo.
func encodeText(id store.ID, t schedule.Text) []byte {
	v := make([]byte, 0, 8+len(t.URL)+len(t.Memo))
	return seal(id[:], append(appendText(append(v, sealedLayout), t.URL), t.Memo...))
}

// decodeText reads what encodeText wrote. A text that cannot be read is none: a claim
// brings the URL again.
func decodeText(id store.ID, v []byte) schedule.Text {
	v, ok := unwrap(id, v)
	if !ok {
		return schedule.Text{}
	}
	r := reader{rest: v}
	url := string(r.text())
	if r.short {
		return schedule.Text{}
	}
	return schedule.Text{URL: url, Memo: slices.Clone(r.rest)}
}
