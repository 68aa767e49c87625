// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"runtime/debug"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/feedpollard/pollard/policy"
)

const (
	// roomSize is how many bytes of large bodies may be in the hands of polls at once,
	// from the moment when [policy.SmallBody] of one have arrived until its outcome is
	// committed. Reading a document takes several times its size for a moment.
	roomSize = 12 << 20
	// roomPatience is how long a poll may wait for room: its origin waits as well.
	roomPatience = 2 * time.Minute
	// heavy is after how many bytes of large bodies what is left of them is collected at
	// once, and plenty is the budget of memory that makes it not worth the while.
	heavy, plenty = 1 << 20, 512 << 20
	// besideMemory is how many bytes of versions may be on their way to readers beyond
	// the budget of memory, before no more of the large ones are read from the store.
	besideMemory = 24 << 20
	// readPatience is how long a reader waits until they may be.
	readPatience = 20 * time.Second
)

// room bounds the memory that large bodies of polls take. A slow one keeps other large
// ones waiting until its poll's timeout; small ones never wait for room.
type room struct {
	bytes  *semaphore.Weighted
	scarce bool         // memory is
	left   atomic.Int64 // bytes of bodies that have been dealt with since the last collection
}

func newRoom(memory int64) *room {
	return &room{bytes: semaphore.NewWeighted(roomSize), scarce: memory < plenty}
}

// errCrowded says that too many large feeds are on their way to readers.
var errCrowded = errors.New("many large feeds are being read: try again in a moment")

// roomToRead waits until a version of so many bytes may be read from the store. When
// it is in memory, or it cannot be, leave is to be called.
func (c *Cache) roomToRead(length int) (leave func(), err error) {
	if length <= policy.SmallBody {
		return func() {}, nil
	}
	ctx, cancel := context.WithTimeout(c.life, readPatience)
	defer cancel()
	size := min(int64(length), roomSize)
	if c.reading.Acquire(ctx, size) != nil {
		return nil, errCrowded
	}
	leave = func() { c.reading.Release(size) }
	for i := 0; c.memory.alive.Load() > c.memory.budget+besideMemory; i++ {
		if i%10 == 0 {
			debug.FreeOSMemory() // most of it may have been sent
		}
		if !sleep(ctx, 100*time.Millisecond) {
			leave()
			return nil, errCrowded
		}
	}
	return leave, nil
}

// visitor is a poll that may need room.
type visitor struct {
	room *room
	held int64
}

func (r *room) visitor() *visitor { return &visitor{room: r} }

// enter waits for room for a body of so many bytes; 0: of any size.
func (v *visitor) enter(ctx context.Context, size int64) error {
	if size <= 0 || size > roomSize {
		size = roomSize
	}
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	if err := v.room.bytes.Acquire(ctx, size); err != nil {
		return err
	}
	v.held += size
	return nil
}

// leave gives the room back. What is left of large bodies is collected soon where memory
// is scarce: the heap may grow to twice of what it had with them before it is.
func (v *visitor) leave() {
	if v.held == 0 {
		return
	}
	if v.room.scarce && v.room.left.Add(v.held) >= heavy {
		v.room.left.Store(0)
		debug.FreeOSMemory()
	}
	v.room.bytes.Release(v.held)
	v.held = 0
}
