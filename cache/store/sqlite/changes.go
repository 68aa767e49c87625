// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/feedpollard/pollard/cache/store"
)

// changes hands the changes that this process makes to calls of Watch. The zero value is ready.
type changes struct {
	mu       sync.Mutex
	watching map[*watcher]bool
}

// watcher is a call of Watch.
type watcher struct {
	unseen chan store.Change
	lost   atomic.Bool // some changes are not among them
}

func (l *changes) add(changes []store.Change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.watching {
		for _, c := range changes {
			select {
			case w.unseen <- c:
			default:
				w.lost.Store(true)
			}
		}
	}
}

// Watch implements [store.Driver].
func (d *database) Watch(ctx context.Context, see func(store.Change) error) error {
	w := &watcher{unseen: make(chan store.Change, 4096)}
	w.lost.Store(true) // what was before
	l := &d.changes
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
		c := store.Change{Lost: true}
		if !w.lost.Swap(false) {
			select {
			case c = <-w.unseen:
			case <-ctx.Done():
				return ctx.Err()
			case <-d.closing:
				return d.errClosed()
			}
		}
		if err := see(c); err != nil {
			return err
		}
	}
}
