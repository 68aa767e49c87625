// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"encoding/binary"
	"strings"

	"github.com/feedpollard/pollard/cache/store"
)

// Notes are what a schedule has to know after a restart and no record says. The
// key of each begins with its kind.
const (
	noteStart = "start "
	notePause = "pause "
	noteHop   = "hop "
)

func encodeStart(s start) []byte { return encode(s.at, s.until) }

func encodeHop(h hop) []byte { return encode(h.at, h.until) }

func encodePause(p pause) []byte { return append(encode(p.until, Time(p.step)), p.why...) }

func encode(a, b Time) []byte {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, 32), uint64(a))
	return binary.BigEndian.AppendUint64(v, uint64(b))
}

// recall takes up what a note says. Notes are of help for minutes or hours only, so one
// that makes no sense is passed over.
func (s *Schedule) recall(key string, value []byte) {
	if len(value) < 16 {
		return
	}
	a, b := Time(binary.BigEndian.Uint64(value)), Time(binary.BigEndian.Uint64(value[8:]))
	kind, name, _ := strings.Cut(key, " ")
	switch kind + " " {
	case noteStart:
		s.started[name] = start{a, b}
	case notePause:
		s.pauses[name] = pause{until: a, why: string(value[16:]), step: int(b)}
	case noteHop:
		var id store.ID
		if copy(id[:], name) == len(id) {
			s.hops[id] = hop{a, b}
		}
	}
}
