// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"time"
)

// tally has the counts of a replay.
type tally struct {
	lines     int64
	malformed int64
	others    int64 // valid lines that are not requests
	elsewhere int64 // requests with another path
	disorder  int64 // requests with an earlier time than the one before

	requests    int64 // for the feed
	bytes       int64 // as logged
	skipped     int64 // requests in the feed's skip hours
	first, last time.Time
	statuses    statuses // as logged

	passed      int64 // requests that a gateway does not answer itself
	served      statuses
	servedBytes int64
	handshakes  int64 // bytes

	polls      int64 // that have ended
	unchanging bool  // the model could not change the feed
}

// statuses count answers by status.
type statuses [1000]int64

func (t *tally) logged(l *Line, now time.Time, skipped bool) {
	if t.requests == 0 {
		t.first = now
	}
	t.last = now
	t.requests++
	t.bytes += l.Bytes
	t.statuses[l.Status]++
	if skipped {
		t.skipped++
	}
}

// pass counts a request that a gateway does not answer itself, with the answer of the
// log: a redirect, or a method other than GET and HEAD.
func (t *tally) pass(l *Line) {
	t.passed++
	t.served[l.Status]++
	t.servedBytes += l.Bytes
}

func (t *tally) answered(status int, bytes int64) {
	t.served[status]++
	t.servedBytes += bytes
}

const (
	usualHead = 400  // bytes of status line and header fields
	leastTLS  = 2000 // bytes of a TLS handshake with a certificate (RFC 8446): from about leastTLS to mostTLS
	mostTLS   = 8000
)

// handshake estimates the bytes of TLS handshakes in the log, if the server counts them.
// A gateway does not save them, and the bytes of the replay do not include them. Only
// answers whose size is known well enough are considered.
func (t *tally) handshake(l *Line, s *stage) {
	if !s.found.headers || l.Known {
		return
	}
	surplus := l.Bytes - usualHead
	switch {
	case l.bodiless(), l.Status/100 == 4:
	case l.Status == 200 && l.Bytes < s.sizes.plainFrom:
		surplus -= s.sizes.packed
	default:
		return
	}
	if leastTLS <= surplus && surplus <= mostTLS {
		t.handshakes += surplus
	}
}
