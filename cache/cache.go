// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package cache is a read-through cache of feeds that polls politely.
//
// It owns the life of a feed. A reader's request is answered from memory
// ([Feed.Serve]); where the feed's next poll is due, one poll is reserved in the
// [Store], made through the [Origin], judged, and committed as one transaction
// (poll.go). How rarely that happens is decided by package policy; how a poll is
// carried out is the business of the Origin.
//
// Readers are answered by RFC 9110 (conditional requests, content coding),
// RFC 9111 (Age, Cache-Control) and RFC 9211 (Cache-Status). It is no general
// HTTP cache: its one kind of content is the feed.
package cache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/policy"
)

// An Origin is where feeds come from.
type Origin interface {
	// Poll makes one conditional GET, its redirects included.
	Poll(ctx context.Context, ask policy.Ask) policy.Answer
	// Ready tells when a poll of this URL could start, and what it would wait for.
	// A poll is not reserved before it can start.
	Ready(url string) (at time.Time, why string)
	// Hold tells of a pause of the URL's host that was agreed before a restart.
	Hold(url string, until time.Time, why string)
}

// Options are what a cache is made of. They stay as they are for its life.
type Options struct {
	Store  Store
	Origin Origin
	Memory int64            // budget of hot representations, in bytes; 0: 64 MiB
	Now    func() time.Time // nil: time.Now
}

// Settings are what a new configuration may change while the cache runs.
type Settings struct {
	// Rules returns the operator's rules for a feed. Nil: the default rules for all.
	Rules func(url string) policy.Rules
	// Feeds are the configured feeds, by canonical URL: they are never forgotten.
	Feeds []string
	// Prefetch polls due feeds in the background. Without it, a poll happens when a reader asks.
	Prefetch bool
	// IdleAfter ends the prefetching of a feed that nobody has asked for so long. 0: 30 days.
	IdleAfter time.Duration
	// Subscribers tells how many readers stand behind a feed; 0: not known. Nil: never known.
	Subscribers func(url string) int
	// Observe is called after each poll, without locks held. Nil: nobody listens.
	Observe func(Poll)
	Log     *zap.Logger // nil: nothing is logged

	pinned map[string]bool // the configured feeds
}

const (
	// grace is how long after its reservation a poll may start. What has not
	// started by then is dropped: a sleeper that wakes up late must not poll.
	grace = 10 * time.Second
	// patience is how long a reader waits for a poll that is under way, counted
	// from its start, before it gets the last good version.
	patience = 3 * time.Second
	// farewell is how long Close lets polls that are under way finish.
	farewell = 5 * time.Second
	// maxUnread bounds the feeds that have never had a version: a reader who asks
	// for invented URLs must not fill the table.
	maxUnread = 10_000
	// maxShielded bounds the feeds of sites in this process, with or without a
	// version: there is no end of URLs for which a site may give a feed.
	maxShielded = 10_000
)

// Cache is the engine. It is safe for concurrent use.
type Cache struct {
	store    Store
	origin   Origin
	memory   *memory
	coders   *coders
	now      func() time.Time
	chance   func() float64
	settings atomic.Pointer[Settings]

	feeds    sync.Map // canonical URL to *Feed; reads take no lock
	finals   finals
	unread   atomic.Int64 // feeds in it without a version, shielded ones left out
	shielded atomic.Int64 // shielded feeds in it

	agenda *agenda
	outage outage // of the store

	open context.Context // of background work: ends when Close begins
	shut context.CancelFunc
	life context.Context // of polls: ends some seconds later
	end  context.CancelFunc
	work sync.WaitGroup
	mu   sync.Mutex // guards the start of work against Close
}

// New opens a cache over a store and reads the record of every feed.
func New(o Options) (*Cache, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Memory <= 0 {
		o.Memory = 64 << 20
	}
	memory, err := newMemory(o.Memory)
	if err != nil {
		return nil, fmt.Errorf("making room for hot representations: %w", err)
	}
	c := &Cache{
		store: o.Store, origin: o.Origin, memory: memory, coders: newCoders(),
		now: o.Now, chance: rand.Float64, agenda: newAgenda(),
	}
	c.life, c.end = context.WithCancel(context.Background())
	c.open, c.shut = context.WithCancel(c.life)
	c.settings.Store(Settings{}.filled())
	if err := c.load(); err != nil {
		c.end()
		memory.close()
		return nil, fmt.Errorf("reading the store: %w", err)
	}
	c.background(func() { c.prefetch(c.open) })
	c.background(func() { c.sweep(c.open) })
	return c, nil
}

func (s Settings) filled() *Settings {
	if s.Rules == nil {
		s.Rules = func(string) policy.Rules { return policy.DefaultRules() }
	}
	if s.IdleAfter <= 0 {
		s.IdleAfter = 30 * 24 * time.Hour
	}
	if s.Subscribers == nil {
		s.Subscribers = func(string) int { return 0 }
	}
	if s.Observe == nil {
		s.Observe = func(Poll) {}
	}
	if s.Log == nil {
		s.Log = zap.NewNop()
	}
	s.pinned = make(map[string]bool, len(s.Feeds))
	for _, url := range s.Feeds {
		s.pinned[url] = true
	}
	return &s
}

// Apply puts settings in force, for all feeds and at once. What was decided
// under earlier rules stands until the next poll.
func (c *Cache) Apply(s Settings) {
	c.settings.Store(s.filled())
	for _, url := range s.Feeds {
		_, _ = c.Feed(url) // for a configured feed there is always room
	}
	c.agenda.wake()
}

// Feed returns the feed of a canonical URL (see [Canonical]), known or new. It
// fails with an [Unavailable] where there is no room for another unknown feed.
func (c *Cache) Feed(url string) (*Feed, error) {
	if f, ok := c.feeds.Load(url); ok {
		return f.(*Feed), nil
	}
	now := c.now()
	fresh := newFeed(c, url, &state{memo: memo{Asked: now}})
	if fresh.shielded() && c.shielded.Load() >= maxShielded {
		return nil, &Unavailable{Status: 503, Reason: "too many feeds of this site are being asked for; try again later", RetryAfter: time.Hour}
	}
	if !fresh.shielded() && !fresh.pinned() && c.unread.Load() >= maxUnread {
		return nil, &Unavailable{Status: 503, Reason: "too many feeds that have never answered are being asked for; try again later", RetryAfter: time.Hour}
	}
	fresh.counted() // before anybody can poll it and count it as read
	f, known := c.feeds.LoadOrStore(url, fresh)
	if known {
		fresh.discounted()
		return f.(*Feed), nil
	}
	c.agenda.put(fresh, now)
	return fresh, nil
}

// counted counts a feed that has come into the table.
func (f *Feed) counted() {
	if f.shielded() {
		f.cache.shielded.Add(1)
	}
	if f.state.Load().Version == 0 {
		f.countUnread(1)
	}
}

// discounted is the inverse, for a feed that has left it.
func (f *Feed) discounted() {
	if f.shielded() {
		f.cache.shielded.Add(-1)
	}
	if f.state.Load().Version == 0 {
		f.countUnread(-1)
	}
}

// countUnread counts the feed as one without a version, or no longer as one.
func (f *Feed) countUnread(by int64) {
	if !f.shielded() {
		f.cache.unread.Add(by)
	}
}

// known returns the feed of a URL that has a record of its own.
func (c *Cache) known(url string) *Feed {
	if f, ok := c.feeds.Load(url); ok {
		return f.(*Feed)
	}
	return nil
}

// load reads all records into the table.
func (c *Cache) load() error {
	now := c.now()
	latest, err := c.store.Latest(c.life)
	if err != nil {
		return err
	}
	// A clock that stands before the last thing written has been set back (a board
	// without a battery, a restored machine): by wall time nothing can be told due.
	setBack := latest.After(now)
	return c.store.Scan(c.life, func(r Record) error {
		s, err := decodeRecord(r)
		if err != nil {
			s = unreadable(r, err) // one bad record must not keep all feeds away
		}
		if setBack && !s.never() {
			s.Next = now.Add(s.planned())
		} else {
			// From here on, steps of the wall clock change nothing.
			s.Next = anchored(s.Next, now)
		}
		f := newFeed(c, r.URL, s)
		if s.never() || s.memo.Asked.IsZero() {
			// No commit will follow, or none has been made, that could tell whether
			// anybody asks: as far as is known, somebody does.
			f.asked.Store(now.Unix())
		}
		c.feeds.Store(r.URL, f)
		f.counted()
		c.finals.claim(f, s, s) // as every publish does
		if p := s.memo.Pause; p.Until.After(now) && !f.shielded() {
			c.origin.Hold(r.URL, p.Until, p.Why)
		}
		c.agenda.put(f, s.Next)
		return nil
	})
}

// background runs work that Close waits for; not at all once Close has begun.
func (c *Cache) background(work func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open.Err() != nil {
		return false
	}
	c.work.Go(work)
	return true
}

// Close ends background work, lets polls that are under way finish for some
// seconds, and frees memory. The store is the caller's to close. Readers may go
// on asking: they get what the store and memory still give.
func (c *Cache) Close() error {
	c.mu.Lock()
	closed := c.open.Err() != nil
	c.shut()
	c.mu.Unlock()
	if closed {
		return errors.New("cache is closed already")
	}
	done := make(chan struct{})
	go func() { c.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(farewell):
	}
	c.end()
	<-done
	c.memory.close()
	c.coders.close()
	return nil
}
