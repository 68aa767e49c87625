// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/feedpollard/pollard/cache/store"
)

// logged is how many changes are kept for those who have not seen them yet.
const logged = 4096

// Log is the log of changes of one process. A cursor of another one, or of before
// a restart, is a cursor whose changes are lost. It is safe for concurrent use;
// the zero value is ready.
type Log struct {
	mu      sync.Mutex
	name    string         // which tells cursors of this log from others
	changes []store.Change // the last ones; that of number n is at n % logged
	next    uint64         // number of the next change
	news    chan struct{}  // closed with the next change
	closed  bool
}

func (l *Log) add(changes []store.Change) {
	if len(changes) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range changes {
		if len(l.changes) < logged {
			l.changes = append(l.changes, c)
		} else {
			l.changes[l.next%logged] = c
		}
		l.next++
		l.changes[(l.next-1)%logged].At = l.cursor(l.next)
	}
	l.wake()
}

// Close ends all calls of Watch.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.wake()
}

func (l *Log) wake() {
	if l.news != nil {
		close(l.news)
		l.news = nil
	}
}

// Watch implements [cache.Store.Watch]. It returns [os.ErrClosed] after Close.
func (l *Log) Watch(ctx context.Context, from store.Cursor, see func(store.Change) error) error {
	next := l.find(from)
	for ctx.Err() == nil {
		c, after, news, err := l.read(next)
		if err != nil {
			return err
		}
		if news == nil {
			if err := see(c); err != nil {
				return err
			}
			next = after
			continue
		}
		select {
		case <-news:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// lost is the number of the change behind a cursor that is not one of this log.
const lost = math.MaxUint64

// find returns the number of the first change behind a cursor.
func (l *Log) find(from store.Cursor) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from == "" {
		return l.next
	}
	l.cursor(0) // so that the log has a name
	name, number, _ := strings.Cut(string(from), ".")
	n, err := strconv.ParseUint(number, 36, 64)
	if err != nil || name != l.name || n > l.next {
		return lost
	}
	return n
}

// read returns change n and the number of the one behind it, or what to wait for.
func (l *Log) read(n uint64) (c store.Change, after uint64, news <-chan struct{}, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case n > l.next || n+uint64(len(l.changes)) < l.next:
		return store.Change{At: l.cursor(l.next), Lost: true}, l.next, nil, nil
	case n < l.next:
		return l.changes[n%logged], n + 1, nil, nil
	case l.closed:
		return store.Change{}, 0, nil, os.ErrClosed
	}
	if l.news == nil {
		l.news = make(chan struct{})
	}
	return store.Change{}, 0, l.news, nil
}

// cursor is the place before change n. The caller holds mu.
func (l *Log) cursor(n uint64) store.Cursor {
	if l.name == "" {
		l.name = strconv.FormatUint(rand.Uint64(), 36)
	}
	return store.Cursor(l.name + "." + strconv.FormatUint(n, 36))
}
