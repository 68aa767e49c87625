// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"os"
	"sync"

	"github.com/feedpollard/pollard/cache/store"
)

// kept is how many changes are kept for a call that has not seen them yet.
const kept = 4096

// changes hands the changes that this process makes to calls of watch. The zero value is ready.
type changes struct {
	mu       sync.Mutex
	watching map[*watcher]bool
	closed   bool
}

// watcher is a call of watch.
type watcher struct {
	unseen []store.Change
	more   chan struct{} // has a value if there are any, or changes has been closed
}

func (w *watcher) wake() {
	select {
	case w.more <- struct{}{}:
	default:
	}
}

func (l *changes) add(changes []store.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.watching {
		if w.unseen = append(w.unseen, changes...); len(w.unseen) > kept {
			w.unseen = []store.Change{{Lost: true}}
		}
		w.wake()
	}
}

// close ends all calls of watch.
func (l *changes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for w := range l.watching {
		w.wake()
	}
}

// watch implements [store.Store.Watch]. It returns [os.ErrClosed] after close.
func (l *changes) watch(ctx context.Context, see func(store.Change) error) error {
	w := &watcher{unseen: []store.Change{{Lost: true}}, more: make(chan struct{}, 1)}
	l.mu.Lock()
	if l.watching == nil {
		l.watching = make(map[*watcher]bool)
	}
	l.watching[w] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watching, w)
	}()
	for {
		l.mu.Lock()
		unseen, closed := w.unseen, l.closed
		w.unseen = nil
		l.mu.Unlock()
		for _, c := range unseen {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err := see(c); err != nil {
				return err
			}
		}
		if closed {
			return os.ErrClosed
		}
		select {
		case <-w.more:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
