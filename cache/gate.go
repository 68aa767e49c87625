// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"slices"
	"sync"
)

// gate bounds the polls in flight, whoever has caused them.
type gate struct {
	mu      sync.Mutex // guards all
	limit   int
	inside  int
	waiting []chan struct{}
}

func (g *gate) resize(limit int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit = limit
	g.admit()
}

// enter waits for a place, or for ctx to end; then it reports false.
func (g *gate) enter(ctx context.Context) bool {
	g.mu.Lock()
	if g.inside < g.limit {
		g.inside++
		g.mu.Unlock()
		return true
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return true
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, turn); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
		return false
	}
	g.inside-- // the place was given in the same moment
	g.admit()
	return false
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	g.admit()
}

// admit lets in who waits and finds a place. The caller holds the lock.
func (g *gate) admit() {
	for g.inside < g.limit && len(g.waiting) > 0 {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
		g.inside++
	}
}

func (g *gate) free() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return max(0, g.limit-g.inside-len(g.waiting))
}

func (g *gate) used() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}
