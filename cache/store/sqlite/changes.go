// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"math"
	"os"
	"sync"

	"github.com/feedpollard/pollard/cache/store"
)

// kept is how many changes are kept for calls that have not seen them yet.
const kept = 4096

// changes are the last changes that this process made. The zero value is ready.
type changes struct {
	mu     sync.Mutex
	last   []store.Change // that of number n is at n % kept
	next   uint64         // number of the next change
	more   chan struct{}  // closed with the next change
	closed bool
}

func (l *changes) add(changes []store.Change) {
	if len(changes) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		l.next++
		if len(l.last) < kept {
			l.last = append(l.last, c)
		} else {
			l.last[(l.next-1)%kept] = c
		}
	}
	l.wake()
}

// close ends all calls of watch.
func (l *changes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake()
}

func (l *changes) wake() {
	if l.more != nil {
		close(l.more)
		l.more = nil
	}
}

// watch implements [store.Store.Watch]. It returns [os.ErrClosed] after close.
func (l *changes) watch(ctx context.Context, see func(store.Change) error) error {
	next := uint64(math.MaxUint64) // what was before is lost
	for ctx.Err() == nil {
		c, after, more, err := l.read(next)
		if err != nil {
			return err
		}
		if more == nil {
			if err := see(c); err != nil {
				return err
			}
			next = after
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// read returns change n and the number of the one after it, or what to wait for.
func (l *changes) read(n uint64) (c store.Change, after uint64, more <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed && n >= l.next:
		return store.Change{}, 0, nil, os.ErrClosed
	case n > l.next || n+uint64(len(l.last)) < l.next:
		return store.Change{Lost: true}, l.next, nil, nil
	case n < l.next:
		return l.last[n%kept], n + 1, nil, nil
	}
	if l.more == nil {
		l.more = make(chan struct{})
	}
	return store.Change{}, 0, l.more, nil
}
