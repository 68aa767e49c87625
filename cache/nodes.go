// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedpollard/pollard/cache/store"
)

const (
	// followBatch is how many records are read at a time.
	followBatch = 100
	// followAtOnce is how many versions are read into memory at once: a store on another
	// machine takes some milliseconds for each, and has few connections.
	followAtOnce = 4
	// followRetry is when records that could not be read are read again, and
	// followRetryMost the longest pause between two such attempts.
	followRetry     = time.Second
	followRetryMost = 10 * time.Second
	// unreadableInRow is how many records that cannot be read, one after the other, say that
	// none can.
	unreadableInRow = 3
)

// changes are the feeds in memory that the store has changed, or may have: their records
// have to be read.
type changes struct {
	mu    sync.Mutex
	feeds map[*Feed]struct{}
	bell  chan struct{} // rung when there are any
}

func newChanges() changes {
	return changes{feeds: make(map[*Feed]struct{}), bell: make(chan struct{}, 1)}
}

// take removes all of them, in no order.
func (ch *changes) take() []*Feed {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	all := slices.Collect(maps.Keys(ch.feeds))
	clear(ch.feeds)
	return all
}

// watch follows what changes in the store, on this node or another.
func (c *Cache) watch(ctx context.Context) {
	// The feeds that were read before the first call has found its place, or while it
	// fails, may have changed unseen. A cursor that no store has made says so.
	from := store.Cursor("unknown")
	for ctx.Err() == nil {
		err := c.store.Watch(ctx, from, func(change store.Change) error {
			from = change.At
			c.see(change)
			return nil
		})
		if ctx.Err() == nil {
			c.log().Warn("changes in the store cannot be followed at present", errField(err))
			sleep(ctx, time.Second)
		}
	}
}

// see finds out what a change means for memory. It reads nothing: where much changes at a
// time, one read takes many feeds, and of each the last change alone.
func (c *Cache) see(change store.Change) {
	if change.Lost {
		c.table.feeds.Range(func(_, v any) bool {
			c.follow(v.(*Feed))
			return true
		})
		return
	}
	if overtaken, ok := c.table.loading.Load(change.ID); ok {
		overtaken.(*atomic.Bool).Store(true)
	}
	v, ok := c.table.ids.Load(change.ID)
	if !ok {
		return
	}
	// Also of a feed that was forgotten the record is read: it may have come back since.
	if f := v.(*Feed); !f.committed(change.Token) && (change.Version == 0 || f.state.Load().version != change.Version) {
		c.follow(f)
	}
}

// committed reports whether a change is this node's own commit, whose outcome it knows. The
// token of the feed's state does not tell: a node that has only seen another's claim has it too.
func (f *Feed) committed(token store.Token) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if token == 0 || token != f.token {
		return false
	}
	f.announced = true
	return true
}

// committing says that changes with a token are from now on this node's own.
func (f *Feed) committing(token store.Token) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.token, f.announced = token, false
}

// notCommitted says that they are not: the commit has failed. The store may have written it
// all the same; then the record is read again.
func (f *Feed) notCommitted() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.announced {
		f.overtaken.Store(true)
	}
	f.token, f.announced = 0, false
}

// follow has the records of feeds read soon, and again until they can be: nothing else
// would bring them before the next change, or the next poll of this node.
func (c *Cache) follow(feeds ...*Feed) {
	if len(feeds) == 0 {
		return
	}
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	for _, f := range feeds {
		c.changes.feeds[f] = struct{}{}
	}
	c.wake(c.changes.bell)
}

// readChanges reads what has changed. Records that cannot be read do not hold up others.
func (c *Cache) readChanges(ctx context.Context) {
	var (
		failed []*Feed
		retry  <-chan time.Time // nil: nothing has failed
		pause  = followRetry
	)
	for {
		select {
		case <-c.changes.bell:
		case <-retry:
			c.follow(failed...)
			failed, retry, pause = nil, nil, min(2*pause, followRetryMost)
		case <-ctx.Done():
			return
		}
		failed = append(failed, c.reread(ctx, c.changes.take())...)
		switch {
		case len(failed) == 0:
			pause = followRetry
		case retry == nil:
			retry = time.After(pause)
		}
	}
}

// reread brings feeds up to date with the store, and returns those that could not be.
func (c *Cache) reread(ctx context.Context, feeds []*Feed) (failed []*Feed) {
	inRow := 0
	for batch := range slices.Chunk(feeds, followBatch) {
		if inRow < unreadableInRow && c.rereadBatch(ctx, batch) == nil {
			continue
		}
		for _, f := range batch { // one of them may be damaged
			if inRow < unreadableInRow && c.rereadBatch(ctx, []*Feed{f}) == nil {
				inRow = 0
				continue
			}
			inRow++
			failed = append(failed, f)
		}
	}
	return failed
}

// rereadBatch reads the records of feeds at once. It fails where one of them cannot be read.
func (c *Cache) rereadBatch(ctx context.Context, feeds []*Feed) error {
	before, ids := make(map[*Feed]*state, len(feeds)), make([]store.ID, 0, len(feeds))
	for _, f := range feeds {
		if !f.leftToPoll() {
			before[f], ids = f.state.Load(), append(ids, f.id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := c.store.Lookup(ctx, ids)
	if err != nil {
		return err
	}
	records := make(map[store.ID]*store.Record, len(found))
	for i := range found {
		records[found[i].ID] = &found[i]
	}
	var work errgroup.Group
	work.SetLimit(followAtOnce)
	for f, old := range before {
		work.Go(func() error {
			if !f.renew(ctx, old, records[f.id]) {
				return f.reload(ctx)
			}
			if old.known && records[f.id] == nil {
				c.forgotten([]store.ID{f.id})
			}
			return nil
		})
	}
	return work.Wait()
}

// leftToPoll reports whether a poll whose request has left is to bring the feed up to
// date: it publishes what it comes to, and the record is read when it ends.
func (f *Feed) leftToPoll() bool {
	f.overtaken.Store(true)
	p := f.underWay()
	if p == nil {
		f.overtaken.Store(false)
		return false
	}
	select {
	case <-p.sent:
		return true
	default:
		return false
	}
}

// catchUp has the record read that others have changed while a poll was under way.
func (f *Feed) catchUp() {
	if f.overtaken.Swap(false) {
		f.cache.follow(f)
	}
}

// reload reads the feed's record from the store. What somebody else publishes
// meanwhile may be newer than what was read: then it is read again.
func (f *Feed) reload(ctx context.Context) error {
	for {
		old := f.state.Load()
		records, err := f.cache.store.Lookup(ctx, []store.ID{f.id})
		if err != nil {
			return err
		}
		var record *store.Record
		if len(records) > 0 {
			record = &records[0]
		}
		if f.renew(ctx, old, record) {
			return nil
		}
	}
}

// renew shows readers what a record says, nil where there is none, in place of the state
// before; not where they are shown another one by now.
func (f *Feed) renew(ctx context.Context, old *state, record *store.Record) bool {
	next := &state{size: stateOverhead}
	if record != nil {
		next = f.read(*record, old)
		f.cache.replace(ctx, f, old, next)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.show(old, next)
}

// polledElsewhere reports whether another node makes the first poll of a feed, as far
// as its record tells: the poll has been granted, and nothing has come of it.
func (f *Feed) polledElsewhere(s *state) bool {
	return s.version == 0 && s.known && s.facts.At.IsZero() && s.facts.Winner == "" && f.cache.elapsed() < f.unanswered(s) && f.underWay() == nil
}

// unanswered is until when the outcome of the last poll may come, as elapsed counts,
// unless redirects hold it up. A node that has not brought it by then may be no more.
func (f *Feed) unanswered(s *state) time.Duration { return s.granted + grace + f.rules().Timeout }

// awaitNode waits for the outcome of a poll that another node makes, as long as for one
// of this node.
func (f *Feed) awaitNode(ctx context.Context, s *state) *state {
	ctx, cancel := context.WithTimeout(ctx, f.unanswered(s)-f.cache.elapsed())
	defer cancel()
	for {
		news := f.news() // of what comes after the next line
		if s = f.state.Load(); !f.polledElsewhere(s) {
			return s
		}
		select {
		case <-news:
		case <-ctx.Done():
			return s
		}
	}
}

// news is closed when readers are shown another state.
func (f *Feed) news() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shown == nil {
		f.shown = make(chan struct{})
	}
	return f.shown
}
