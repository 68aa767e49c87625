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

	"golang.org/x/sync/semaphore"
)

// Polls and bytes are limited:
//
//	polls   in flight, and of these the ones of feeds that are not established   [pollLimit]
//	bytes   of large bodies that polls have in hand                       [Cache.bodies]
//	        of versions that are being sent and are not in memory         [readersLimit]
//	        of documents that are being parsed or compressed              [Cache.documents]
const (
	// maxWaiting is how many polls may wait for their host's slot, or to be in flight, at once.
	maxWaiting = 4096
	// otherPart is which part of that, and of the polls in flight, feeds may take that are not
	// established, as 1/n: readers can invent any number of URLs, and the others must be polled
	// all the same.
	otherPart = 2
	// bodiesSize is how many bytes of large bodies polls may have in hand: from the moment when
	// [policy.SmallBody] of one have arrived until its outcome is committed.
	bodiesSize = 12 << 20
	// bodyPatience is how long a poll may wait for that: its origin waits as well.
	bodyPatience = 2 * time.Minute
	// documentsSize is how many bytes of documents are parsed or compressed at once, or a single
	// one that is larger: a hostile one takes a hundred times its size of memory for a moment.
	documentsSize = 1 << 20
	// quickDocument is up to how many bytes a document never waits for that.
	quickDocument = 64 << 10
)

// pollLimit limits the polls in flight. It does not change: with another limit comes another
// one, for which those in flight do not count.
type pollLimit struct {
	limit, otherLimit       int
	all, other              *semaphore.Weighted
	inFlight, otherInFlight atomic.Int64 // other: of feeds that are not established
}

func newPollLimit(limit int) *pollLimit {
	p := &pollLimit{limit: limit, otherLimit: max(1, limit/otherPart)}
	p.all, p.other = semaphore.NewWeighted(int64(p.limit)), semaphore.NewWeighted(int64(p.otherLimit))
	return p
}

// acquire waits until a poll may start, or for ctx to end; then it fails.
func (p *pollLimit) acquire(ctx context.Context, established bool) (release func(), err error) {
	if !established {
		if err := p.other.Acquire(ctx, 1); err != nil {
			return nil, err
		}
	}
	if err := p.all.Acquire(ctx, 1); err != nil {
		if !established {
			p.other.Release(1)
		}
		return nil, err
	}
	others := number(!established)
	p.inFlight.Add(1)
	p.otherInFlight.Add(others)
	return func() {
		p.inFlight.Add(-1)
		p.otherInFlight.Add(-others)
		p.all.Release(1)
		p.other.Release(others)
	}, nil
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// free returns how many polls may start at once, and how many of feeds that are not established.
func (p *pollLimit) free() (all, other int) {
	all = max(0, p.limit-int(p.inFlight.Load()))
	return all, min(all, p.otherLimit-int(p.otherInFlight.Load()))
}

const (
	// smallPart is how many bytes of a response are not counted: what the kernel takes for a
	// reader who does not.
	smallPart = 64 << 10
	// readersSize is how many bytes may be in hand for readers: parts of versions that are not in
	// memory, one for each response.
	readersSize = 32 << 20
	// crowdedRetry is the Retry-After of errCrowded.
	crowdedRetry = 10 * time.Second
)

// errCrowded reports that too many large feeds are on their way to readers.
var errCrowded = errors.New("many large feeds are being read: try again in a moment")

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

// network returns the network of a request's client that one party is likely to have: the /24
// of an IPv4 address, the /48 of an IPv6 address (RFC 6177). All clients whose address is not
// known are one.
func (c *Cache) network(r *http.Request) netip.Prefix {
	address, bits := c.settings.Load().Client(r), 48
	if address.Is4() {
		bits = 24
	}
	network, _ := address.Prefix(bits) // zero without an address
	return network
}

// body is the large body that a poll has in hand.
type body struct {
	of       *semaphore.Weighted
	reserved reservation
}

// reserve waits until the poll may have a body of so many bytes in hand; 0: of any size.
func (b *body) reserve(ctx context.Context, size int64) error {
	if size <= 0 || size > bodiesSize {
		size = bodiesSize
	}
	ctx, cancel := context.WithTimeout(ctx, bodyPatience)
	defer cancel()
	if err := b.of.Acquire(ctx, size); err != nil {
		return err
	}
	b.reserved = reservation{b.of, size}
	return nil
}

// reservation is a number of bytes of a [semaphore.Weighted].
type reservation struct {
	of    *semaphore.Weighted
	bytes int64
}

func (r reservation) release() {
	if r.bytes > 0 {
		r.of.Release(r.bytes)
	}
}

// startWork waits until a document of so many bytes may be parsed or compressed. The caller
// has to release what it returns.
func (c *Cache) startWork(ctx context.Context, length int) (reservation, error) {
	if length <= quickDocument {
		return reservation{}, nil
	}
	size := min(int64(length), documentsSize)
	if err := c.documents.Acquire(ctx, size); err != nil {
		return reservation{}, err
	}
	return reservation{c.documents, size}, nil
}
