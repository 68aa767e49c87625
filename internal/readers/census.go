// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package readers knows who asks for feeds.
//
// A [Census] estimates how many readers stand behind each feed, which is what a
// publisher wants to learn from the one poller that it sees. It keeps neither
// addresses nor names, only bits that they hash to. A [Ledger] keeps what readers did,
// and judges them. What both have counted can be taken out as figures, for a store
// that adds up what several nodes count (stored.go, turnover.go).
package readers

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// words of 64 bits make a bitmap: 4096 bits, 512 bytes. Linear counting (Whang,
	// Vander-Zanden, Taylor 1990) is within some 3 % up to 5,000 readers with them,
	// and reports at most 34,000.
	words = 64
	slots = words * 64
	// generation is how long a bitmap collects: a week, the same one for all nodes. The
	// estimate is over the current and the previous one, so a reader counts for one to
	// two weeks.
	generation = 7 * 24 * time.Hour
	// maxTallies bounds memory, at 1 KiB each, where readers ask for invented URLs.
	maxTallies = 1 << 16
	// lookedAt is how many tallies are looked at for the one that makes room.
	lookedAt = 16
	// maxAgent is how much of a User-Agent is looked at, in bytes.
	maxAgent = 256
)

// Census counts the readers of feeds. It is safe for concurrent use.
type Census struct {
	seed    uint64 // keeps strangers from choosing addresses that collide
	tallies sync.Map
	count   atomic.Int64
	limit   int64
}

// NewCensus returns a census in which nobody has been counted.
func NewCensus() *Census { return &Census{seed: rand.Uint64(), limit: maxTallies} }

// Tally returns the tally of a feed, for [Tally.Note]. When there are too many, that of
// another feed makes room, preferably of one that nearly nobody asks for.
func (c *Census) Tally(feed string) *Tally {
	if t, ok := c.tallies.Load(feed); ok {
		return t.(*Tally)
	}
	if c.count.Load() >= c.limit {
		c.makeRoom()
	}
	t, known := c.tallies.LoadOrStore(feed, &Tally{seed: c.seed})
	if !known {
		c.count.Add(1)
	}
	return t.(*Tally)
}

// Count estimates how many readers asked for a feed in the last week or two; 0
// for a feed that nobody asked for.
func (c *Census) Count(feed string, now time.Time) int {
	t, ok := c.tallies.Load(feed)
	if !ok {
		return 0
	}
	return t.(*Tally).count(now)
}

// Forget drops what is known of a feed's readers.
func (c *Census) Forget(feed string) {
	if _, ok := c.tallies.LoadAndDelete(feed); ok {
		c.count.Add(-1)
	}
}

// makeRoom drops the tally with the fewest readers of some.
func (c *Census) makeRoom() {
	var victim any
	fewest, looked := slots+1, 0
	c.tallies.Range(func(feed, t any) bool {
		if n := t.(*Tally).set(); n < fewest {
			victim, fewest = feed, n
		}
		looked++
		return looked < lookedAt
	})
	if feed, ok := victim.(string); ok {
		c.Forget(feed)
	}
}

// Tally is the readers of one feed: two bitmaps, of this week and of the last.
type Tally struct {
	seed    uint64
	maps    [2][words]atomic.Uint64
	current atomic.Uint32 // index of this week's bitmap
	week    atomic.Int64  // which that is, counted from 1970; 0: nobody has counted yet
	news    atomic.Bool   // there are bits that no store has
}

// Note counts a reader, once however often it asks. A reader is a User-Agent
// without its numbers (so an update makes no new reader) at a network: an IPv4
// /24 or an IPv6 /64, since homes change addresses inside of those. Normally it
// costs one hash and one atomic load.
func (t *Tally) Note(userAgent string, client netip.Addr) {
	bit := t.hash(userAgent, client) % slots
	word := &t.maps[t.current.Load()&1][bit/64]
	if mask := uint64(1) << (bit % 64); word.Load()&mask == 0 {
		word.Or(mask)
		t.news.Store(true)
	}
}

// hash is FNV-1a over the parts of a reader, finished as in SplitMix64, since the
// low bits of FNV alone are poorly mixed.
func (t *Tally) hash(userAgent string, client netip.Addr) uint64 {
	const prime = 0x100000001b3
	h := t.seed ^ 0xcbf29ce484222325
	for _, c := range []byte(userAgent[:min(len(userAgent), maxAgent)]) {
		if '0' <= c && c <= '9' || c == '.' {
			continue
		}
		h = (h ^ uint64(c)) * prime
	}
	client = client.Unmap()
	network := 8
	if client.Is4() {
		network = 3
	}
	if client.IsValid() {
		address := client.As16()
		from := 0
		if client.Is4() {
			from = 12
		}
		for _, c := range address[from : from+network] {
			h = (h ^ uint64(c)) * prime
		}
	}
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// count turns the weeks over and estimates the readers in both. Turning over is
// left to who counts, so that noting needs no clock.
func (t *Tally) count(now time.Time) int {
	t.turn(weekOf(now))
	free := max(slots-t.set(), 1)
	return int(math.Round(slots * math.Log(float64(slots)/float64(free))))
}

func weekOf(now time.Time) int64 { return now.Unix() / int64(generation/time.Second) }

// turn makes a week the present one. A clock that goes back changes nothing.
func (t *Tally) turn(week int64) {
	before := t.week.Load()
	if before >= week || !t.week.CompareAndSwap(before, week) || before == 0 {
		return
	}
	next := (t.current.Load() + 1) & 1
	t.clear(next)
	t.current.Store(next)
	if week > before+1 {
		t.clear((next + 1) & 1)
	}
}

func (t *Tally) clear(index uint32) {
	for i := range words {
		t.maps[index][i].Store(0)
	}
}

// set is how many bits are, in either week.
func (t *Tally) set() (n int) {
	for i := range words {
		n += bits.OnesCount64(t.maps[0][i].Load() | t.maps[1][i].Load())
	}
	return n
}
