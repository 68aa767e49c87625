// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/internal/feedurl"
	"golang.org/x/sync/semaphore"
)

// Two things are limited: polls, and bytes in hand. Readers can invent any number of URLs, so feeds
// that are not established take half of what polls may take at most.
//
//	polls  that wait for their claim, and those in flight       [pollLimits]
//	bytes  that arrive from origins, of large bodies            [inHand.receiving]
//	       of documents that are being parsed or compressed     [inHand.parsing]
//	       of versions that are being sent and not in memory    [inHand.sending]
//
// Each stage of the bytes has a budget of its own, so that a slow origin, a hostile document and a
// slow reader do not hold up each other.
const (
	// waitingPolls is how many polls may wait, for each one that may be in flight.
	waitingPolls = 32
	// receivingSize is how many bytes of large bodies polls may have in hand: from the moment when
	// [policy.SmallBody] of one have arrived until its outcome is committed.
	receivingSize = 24 << 20
	// parsingSize is how many bytes of documents are parsed or compressed at once, or a single
	// one that is larger: a hostile one takes a hundred times its size of memory for a moment.
	parsingSize = 1 << 20
	// quickDocument is up to how many bytes a document never waits for that.
	quickDocument = 64 << 10
)

// pollLimits limit polls while they wait for their claim, and while they are in flight. With another
// number in flight comes another limit, for which those in flight do not count.
type pollLimits struct{ waiting, inFlight *limit }

func newPollLimits(inFlight int) *pollLimits {
	return &pollLimits{newLimit(int64(inFlight) * waitingPolls), newLimit(int64(inFlight))}
}

// inHand are the bytes in hand.
type inHand struct {
	receiving *limit
	parsing   *semaphore.Weighted
	sending   readersLimit
}

// limit is a number of polls or bytes, of which feeds that are not established take half.
type limit struct {
	size, otherSize int64
	all, other      *semaphore.Weighted
	used, otherUsed atomic.Int64
}

func newLimit(size int64) *limit {
	l := &limit{size: size, otherSize: max(1, size/2)}
	l.all, l.other = semaphore.NewWeighted(l.size), semaphore.NewWeighted(l.otherSize)
	return l
}

// acquire waits until a feed may have n, at most half of all, or for ctx to end; then it fails.
func (l *limit) acquire(ctx context.Context, n int64, established bool) (release func(), err error) {
	n = min(n, l.otherSize)
	if !established {
		if err := l.other.Acquire(ctx, n); err != nil {
			return nil, err
		}
	}
	if err := l.all.Acquire(ctx, n); err != nil {
		if !established {
			l.other.Release(n)
		}
		return nil, err
	}
	return l.taken(n, established), nil
}

// try is acquire without waiting. It returns nil if the feed may not have n now.
func (l *limit) try(n int64, established bool) (release func()) {
	if !established && !l.other.TryAcquire(n) {
		return nil
	}
	if !l.all.TryAcquire(n) {
		if !established {
			l.other.Release(n)
		}
		return nil
	}
	return l.taken(n, established)
}

func (l *limit) taken(n int64, established bool) (release func()) {
	others := n
	if established {
		others = 0
	}
	l.used.Add(n)
	l.otherUsed.Add(others)
	return func() {
		l.used.Add(-n)
		l.otherUsed.Add(-others)
		l.all.Release(n)
		l.other.Release(others)
	}
}

// free returns how much may be taken at once, and how much for feeds that are not established.
func (l *limit) free() (all, other int) {
	all = max(0, int(l.size-l.used.Load()))
	return all, min(all, int(l.otherSize-l.otherUsed.Load()))
}

const (
	// smallPart is how many bytes of a response are not counted: what the kernel takes for a
	// reader who does not.
	smallPart = 64 << 10
	// decoderSize is what it takes to decode a version while it is sent.
	decoderSize = 64 << 10
	// readersSize is how many bytes may be in hand for readers: parts of versions that are not in
	// memory, one for each response, and decoders.
	readersSize = 32 << 20
	// busyRetry is the Retry-After of errBusy.
	busyRetry = 10 * time.Second
)

// errBusy reports that too many large feeds are on their way to readers.
var errBusy = errors.New("many large feeds are being read: try again in a moment")

// readersLimit limits the bytes that are in hand for readers. The networks that have some in
// hand share [readersSize] equally. A network that has none gets one response all the same, up
// to twice the size, so that others cannot keep it out.
type readersLimit struct {
	mu       sync.Mutex // guards all
	total    int64
	networks map[netip.Prefix]int64
}

// take returns what gives the bytes back, or nil if the network may not have so many. With
// force, it may always.
func (l *readersLimit) take(network netip.Prefix, bytes int64, force bool) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	used := l.networks[network]
	most, limit := int64(readersSize), int64(readersSize)
	if used == 0 {
		most *= 2
	} else {
		limit /= int64(len(l.networks))
	}
	if !force && (l.total+bytes > most || used+bytes > limit) {
		return nil
	}
	if l.networks == nil {
		l.networks = make(map[netip.Prefix]int64)
	}
	l.total += bytes
	l.networks[network] += bytes
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.total -= bytes
		if l.networks[network] -= bytes; l.networks[network] == 0 {
			delete(l.networks, network)
		}
	}
}

// network returns the network of a request's client. All clients whose address is not known are one.
func (c *Cache) network(r *http.Request) netip.Prefix {
	return feedurl.Network(c.settings.Load().Client(r))
}

// largeBody is the large body that a poll has in hand; the zero largeBody is none.
type largeBody struct{ release func() }

// reserve waits until the poll may have a body of so many bytes in hand; 0: of any size.
func (b *largeBody) reserve(ctx context.Context, f *Feed, size int64) (err error) {
	ctx, cancel := context.WithTimeout(ctx, feedstate.BodyTimeout)
	defer cancel()
	if size <= 0 {
		size = receivingSize
	}
	b.release, err = f.cache.inHand.receiving.acquire(ctx, size, f.established())
	return err
}

func (b *largeBody) done() {
	if b.release != nil {
		b.release()
	}
}

// parse waits until a document of so many bytes may be parsed or compressed. The caller calls
// what it returns afterwards.
func (h *inHand) parse(ctx context.Context, length int) (done func(), err error) {
	if length <= quickDocument {
		return func() {}, nil
	}
	size := int64(min(length, parsingSize))
	if err := h.parsing.Acquire(ctx, size); err != nil {
		return nil, err
	}
	return func() { h.parsing.Release(size) }, nil
}
