// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"hash/maphash"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// refusedEvery is how often a reader that is refused again and again causes an event.
	refusedEvery = time.Hour
	// maxRefused is how many readers cause an event in that time, at most: handlers may send mails, and
	// strangers make up readers.
	maxRefused = 1000
)

// refusedReaders makes events of the requests that rules refuse. The data of an event, as
// {event.data.<name>}:
//
//	feed        the feed's URL without credentials, as in logs; empty: none was named
//	rule        the line of defend, or access
//	status      of the answer
//	reason      as in logs
//	user_agent  of a shield's reader
//	network     of a shield's reader: its /24, or /48 in IPv6
//
// Of a gateway's reader an event says nothing.
type refusedReaders struct {
	events chan map[string]any

	seed maphash.Seed
	mu   sync.Mutex           // guards last
	last map[uint64]time.Time // when a reader caused an event
}

// refusedReader tells readers apart, for the time of an hour.
type refusedReader struct {
	shield    bool
	address   netip.Addr // the /64 in IPv6
	userAgent string
}

func newRefusedReaders() *refusedReaders {
	return &refusedReaders{events: make(chan map[string]any, maxQueued), seed: maphash.MakeSeed(), last: make(map[uint64]time.Time)}
}

// queue queues the event of a refused request. It never blocks.
func (q *refusedReaders) queue(r *door.Request, feed string, refusal *door.Refusal, shield bool) {
	address := r.Client.Address.Unmap().WithZone("")
	reader := refusedReader{shield, address, r.UserAgent()}
	if address.Is6() {
		reader.address = netip.PrefixFrom(address, 64).Masked().Addr()
	}
	if !q.first(maphash.Comparable(q.seed, reader), time.Now()) {
		return
	}
	data := map[string]any{
		"feed": "", "rule": refusal.Rule, "status": refusal.Status, "reason": feedurl.Message(refusal.Reason),
	}
	if feed != "" {
		data["feed"] = feedurl.Redact(ReadersURL(feed))
	}
	if shield {
		data["user_agent"], data["network"] = feedurl.Message(r.UserAgent()), ""
		if address.IsValid() {
			data["network"] = feedurl.Network(address).String()
		}
	}
	select {
	case q.events <- data:
	default: // handlers are slow: an event of this kind is the first to go
	}
}

// first reports whether a reader has caused no event for an hour, and others have left room.
func (q *refusedReaders) first(reader uint64, now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	old := func(at time.Time) bool { return now.Sub(at) >= refusedEvery || at.After(now) }
	if at, known := q.last[reader]; known && !old(at) {
		return false
	}
	if len(q.last) >= maxRefused {
		maps.DeleteFunc(q.last, func(_ uint64, at time.Time) bool { return old(at) })
		if len(q.last) >= maxRefused {
			return false
		}
	}
	q.last[reader] = now
	return true
}
