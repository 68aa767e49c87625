// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/feedurl"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"
)

// Two things are limited, and shared by owners: readers can invent any number of URLs.
//
//	polls  that wait for their claim, and those in flight       [Cache.queued], [Cache.inFlight]
//	bytes  that arrive from origins, of large bodies            [inHand.receiving]
//	       of documents that are being parsed or compressed     [inHand.parsing]
//	       of versions that are being sent and not in memory    [inHand.sending]
//
// Each stage of the bytes has a budget of its own, so that a slow origin, a hostile document and a
// slow reader do not hold up each other.
const (
	// waitingPolls is how many polls may wait.
	waitingPolls = 4096
	// receivingSize is how many bytes of large bodies polls may have in hand: from the moment when
	// [policy.SmallBody] of one have arrived until its outcome is committed.
	receivingSize = 24 << 20
	// parsingSize is how many bytes of documents are parsed or compressed at once, or a single
	// one that is larger: a hostile one takes a hundred times its size of memory for a moment.
	parsingSize = 1 << 20
	// quickDocument is up to how many bytes a document never waits for that.
	quickDocument = 64 << 10
	// tryAgain is when a poll that was refused by a limit asks again.
	tryAgain = time.Second / 2
)

// inHand are the bytes in hand.
type inHand struct {
	receiving limit
	parsing   *semaphore.Weighted
	sending   readersLimit
	garbage   rate.Sometimes // collected after a large body
}

// limit is a number of polls or bytes, shared by owners. The last eighth is the operator's, and one other owner may take
// half of the rest. A request for more is refused at once.
type limit struct {
	mu     sync.Mutex // guards what follows
	size   int64
	alone  bool // nothing is refused while it is all unused
	used   int64
	owners map[store.Owner]int64
}

// newLimit returns a limit. With alone, nothing is refused while it is all unused.
func newLimit(size int64, alone bool) limit {
	return limit{size: size, alone: alone, owners: make(map[store.Owner]int64)}
}

// resize sets another size. Polls and bytes that were taken before count.
func (l *limit) resize(size int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.size = size
}

// try takes n for an owner, at most half. It returns nil if the owner may not have it now.
func (l *limit) try(by store.Owner, n int64) (release func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.most(by)
	half := max(1, most/2)
	n = min(n, half)
	fits := l.used+n <= most && (by == store.Operator || l.owners[by]+n <= half)
	if !fits && !(l.alone && l.used == 0) {
		return nil
	}
	l.add(by, n)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.add(by, -n)
	}
}

// room returns how much more an owner may take.
func (l *limit) room(by store.Owner) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := l.most(by)
	if by == store.Operator {
		return max(0, most-l.used)
	}
	return max(0, min(most-l.used, max(1, most/2)-l.owners[by]))
}

// most returns up to how much is taken before an owner may have more.
func (l *limit) most(by store.Owner) int64 {
	if by == store.Operator {
		return l.size
	}
	return max(1, l.size-max(1, l.size/8))
}

func (l *limit) add(by store.Owner, n int64) {
	l.used += n
	if l.owners[by] += n; l.owners[by] == 0 {
		delete(l.owners, by)
	}
}

// inUse returns how much is taken.
func (l *limit) inUse() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used
}

const (
	// smallPart is how many bytes of a response are not counted: what the kernel takes for a
	// reader who does not.
	smallPart = 64 << 10
	// decoderSize is what it takes to decode a version while it is sent.
	decoderSize = 64 << 10
	// readersSize is how many bytes may be in hand for readers: parts of versions that are not in
	// memory, one for each response, and decoders: of a thousand readers.
	readersSize = 64 << 20
	// busyRetry is the Retry-After of errBusy.
	busyRetry = 10 * time.Second
)

// errBusy reports that too many large feeds are on their way to readers.
var errBusy = errors.New("many large feeds are being read: try again in a moment")

// readersLimit limits the bytes that are in hand for readers. The networks that have some in
// hand share [readersSize] equally. A network that has none gets one response all the same, up
// to half as much more, so that others cannot keep it out.
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
		most += most / 2
	} else {
		limit /= int64(len(l.networks))
	}
	if !force && (l.total+bytes > most || used+bytes > limit) {
		return nil
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
type largeBody struct {
	cache   *Cache
	release func()
}

// reserve waits until the poll may have a body of so many bytes in hand.
func (b *largeBody) reserve(ctx context.Context, f *Feed, size int64) error {
	ctx, cancel := context.WithTimeout(ctx, feedstate.BodyTimeout)
	defer cancel()
	b.cache = f.cache
	for {
		if b.release = f.cache.inHand.receiving.try(f.owner(), size); b.release != nil {
			return nil
		}
		if !sleep(ctx, tryAgain) {
			return ctx.Err()
		}
	}
}

func (b *largeBody) done() {
	if b.release != nil {
		b.cache.inHand.garbage.Do(runtime.GC) // it is several times as large: the next body is to take its place
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
