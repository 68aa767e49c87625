// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// weekWords is the size of a feed's sketch of one week, in words: 512 registers,
	// and so a standard error of 4.6 %.
	weekWords = 128
	// week is how long a sketch collects. The weeks are the same on all nodes. An
	// estimate covers this week and the last one.
	week = 7 * 24 * time.Hour
	// maxFeeds bounds the feeds that are counted, at about 1 KiB each.
	maxFeeds = 1 << 16
	// candidates is how many feeds are compared to find one to evict.
	candidates = 16
)

// Feeds counts the readers of each feed and the answers to them. It keeps neither names
// nor addresses. It is safe for concurrent use.
type Feeds struct {
	counters sync.Map // feed -> *FeedCounter
	count    atomic.Int64
	limit    int64
	evicted  func(Served)
}

// NewFeeds returns empty Feeds. evicted is called with the answers of a feed that is
// dropped before [Feeds.Take] has returned them. If it is nil, they are lost.
func NewFeeds(evicted func(Served)) *Feeds {
	if evicted == nil {
		evicted = func(Served) {}
	}
	return &Feeds{limit: maxFeeds, evicted: evicted}
}

// Served counts the answers to the readers of a feed.
type Served struct {
	Feed    string
	Answers int64 // with the feed or a 304
	Bytes   int64
}

// Feed returns the counter of a feed. If there are too many counters, it drops that of a
// feed with few readers.
func (f *Feeds) Feed(feed string) *FeedCounter {
	if c, ok := f.counters.Load(feed); ok {
		return c.(*FeedCounter)
	}
	if f.count.Load() >= f.limit {
		f.evict()
	}
	c, known := f.counters.LoadOrStore(feed, new(FeedCounter))
	if !known {
		f.count.Add(1)
	}
	return c.(*FeedCounter)
}

// Subscribers estimates how many readers asked for a feed in the last week or two. It also
// begins a new week if one is due, so that [FeedCounter.CountReader] does not need a clock.
func (f *Feeds) Subscribers(feed string, now time.Time) int {
	known, ok := f.counters.Load(feed)
	if !ok {
		return 0
	}
	c := known.(*FeedCounter)
	c.turn(weekOf(now))
	both := make(sketch, weekWords)
	both.merge(c.sketches[0][:])
	both.merge(c.sketches[1][:])
	return int(both.count())
}

// Forget drops the counter of a feed.
func (f *Feeds) Forget(feed string) {
	if c, ok := f.counters.LoadAndDelete(feed); ok {
		f.count.Add(-1)
		if served := c.(*FeedCounter).take(feed); served.Answers > 0 {
			f.evicted(served)
		}
	}
}

// evict compares some counters and drops the one with the fewest readers.
func (f *Feeds) evict() {
	smallest, fewest, compared := "", weekWords+1, 0
	f.counters.Range(func(feed, c any) bool {
		if n := c.(*FeedCounter).used(); n < fewest {
			smallest, fewest = feed.(string), n
		}
		compared++
		return compared < candidates
	})
	f.Forget(smallest)
}

// Take calls yield with the answers of each feed since the last call.
func (f *Feeds) Take(yield func(Served)) {
	f.counters.Range(func(feed, c any) bool {
		if served := c.(*FeedCounter).take(feed.(string)); served.Answers > 0 {
			yield(served)
		}
		return true
	})
}

// FeedCounter counts the readers of one feed, in sketches of this week and the last one,
// and the answers to them.
type FeedCounter struct {
	sketches       [2][weekWords]uint32
	current        atomic.Uint32 // index of this week's sketch
	week           atomic.Int64  // the current week, counted from 1970; 0: not known yet
	answers, bytes atomic.Int64
}

// CountReader counts a reader, once per week, by its hash ([Key.Reader]). For a known reader it
// costs an atomic load.
func (c *FeedCounter) CountReader(reader uint64) { c.ago(0).add(reader) }

// CountAnswer counts a request that was answered with the feed or a 304.
func (c *FeedCounter) CountAnswer(bytes int64) {
	c.answers.Add(1)
	c.bytes.Add(bytes)
}

func (c *FeedCounter) take(feed string) Served {
	return Served{feed, c.answers.Swap(0), c.bytes.Swap(0)}
}

// ago returns the sketch of this week (0) or the last one (1).
func (c *FeedCounter) ago(weeks uint32) sketch {
	return c.sketches[(c.current.Load()+weeks)&1][:]
}

func weekOf(now time.Time) int64 { return now.Unix() / int64(week/time.Second) }

// turn begins a week. If the clock goes back, it does nothing.
func (c *FeedCounter) turn(to int64) {
	from := c.week.Load()
	if from >= to || !c.week.CompareAndSwap(from, to) || from == 0 {
		return
	}
	c.ago(1).clear()
	c.current.Add(1)
	if to > from+1 {
		c.ago(1).clear()
	}
}

// used returns the number of words that are set. It grows with the readers.
func (c *FeedCounter) used() (n int) {
	for i := range weekWords {
		if atomic.LoadUint32(&c.sketches[0][i])|atomic.LoadUint32(&c.sketches[1][i]) != 0 {
			n++
		}
	}
	return n
}

// FeedSketch is a feed's sketch of one week in the form in which it is saved.
type FeedSketch struct {
	Feed      string `json:"feed"`
	Week      int64  `json:"week"` // counted from 1970
	Registers []byte `json:"registers"`
}

// Sketches returns the sketches of up to limit feeds, those with the most readers.
func (f *Feeds) Sketches(now time.Time, limit int) (saved []FeedSketch) {
	readers := make(map[string]int)
	f.counters.Range(func(feed, c any) bool {
		c.(*FeedCounter).turn(weekOf(now))
		readers[feed.(string)] = c.(*FeedCounter).used()
		return true
	})
	feeds := slices.SortedFunc(maps.Keys(readers), func(a, b string) int { return cmp.Compare(readers[b], readers[a]) })
	for _, feed := range feeds[:min(len(feeds), limit)] {
		c := f.Feed(feed)
		for age := range uint32(2) {
			if registers := c.ago(age).bytes(); registers != nil {
				saved = append(saved, FeedSketch{feed, c.week.Load() - int64(age), registers})
			}
		}
	}
	return saved
}

// MergeSketches adds the readers that another process, or an earlier one, has counted in
// this week and the last one.
func (f *Feeds) MergeSketches(saved []FeedSketch, now time.Time) {
	this := weekOf(now)
	for _, s := range saved {
		if age := this - s.Week; age == 0 || age == 1 {
			c := f.Feed(s.Feed)
			c.turn(this)
			c.ago(uint32(age)).mergeBytes(s.Registers)
		}
	}
}
