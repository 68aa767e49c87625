// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// agenda is the feeds in the order of their next polls, for prefetching.
type agenda struct {
	mu    sync.Mutex // guards the heap and the places of feeds in it
	feeds byTime
	bell  chan struct{} // rung when the first entry may have changed
}

func newAgenda() *agenda { return &agenda{bell: make(chan struct{}, 1)} }

// put enters a feed, or moves it. Shielded feeds have no place on it: the way to
// their site is shown by whoever asks for them. Nor have feeds that were forgotten
// while somebody still held them.
func (a *agenda) put(f *Feed, when time.Time) {
	if f.shielded() {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.forgotten.Load() {
		return
	}
	f.when = when
	if f.place < 0 {
		heap.Push(&a.feeds, f)
	} else {
		heap.Fix(&a.feeds, f.place)
	}
	if f.place == 0 {
		a.wake()
	}
}

// remove takes a feed off.
func (a *agenda) remove(f *Feed) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if f.place >= 0 {
		heap.Remove(&a.feeds, f.place)
	}
}

// take removes and returns the first feed if it is due; otherwise it tells when
// the first one will be, or false where the agenda is empty.
func (a *agenda) take(now time.Time) (f *Feed, at time.Time, some bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.feeds) == 0 {
		return nil, time.Time{}, false
	}
	first := a.feeds[0]
	if first.when.After(now) {
		return nil, first.when, true
	}
	heap.Remove(&a.feeds, 0)
	return first, first.when, true
}

// wake makes the prefetching look at the agenda again.
func (a *agenda) wake() {
	select {
	case a.bell <- struct{}{}:
	default:
	}
}

// wait sleeps until a time, a ring of the bell, or the end.
func (a *agenda) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-a.bell:
	case <-ctx.Done():
	}
}

// byTime implements [heap.Interface].
type byTime []*Feed

func (b byTime) Len() int           { return len(b) }
func (b byTime) Less(i, j int) bool { return b[i].when.Before(b[j].when) }
func (b byTime) Swap(i, j int) {
	b[i], b[j] = b[j], b[i]
	b[i].place, b[j].place = i, j
}

func (b *byTime) Push(x any) {
	f := x.(*Feed)
	f.place = len(*b)
	*b = append(*b, f)
}

func (b *byTime) Pop() any {
	last := len(*b) - 1
	f := (*b)[last]
	(*b)[last] = nil
	*b = (*b)[:last]
	f.place = -1
	return f
}
