// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
)

const (
	// readBatchSize is how many records are read at a time.
	readBatchSize = 100
	// otherNodeEvery is how often a reader who waits for the poll of another node looks for its outcome.
	otherNodeEvery = 100 * time.Millisecond
	// changedRetry is when records that could not be read are read again.
	changedRetry = 2 * time.Second
)

// changes are the feeds in memory that the store has changed, or may have: their records
// have to be read.
type changes struct {
	mu     sync.Mutex
	feeds  map[*Feed]struct{}
	signal chan struct{} // rung when there are any
}

func newChanges() changes {
	return changes{feeds: make(map[*Feed]struct{}), signal: make(chan struct{}, 1)}
}

// take removes all of them, in no order.
func (ch *changes) take() []*Feed {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	all := slices.Collect(maps.Keys(ch.feeds))
	clear(ch.feeds)
	return all
}

// watch notices what changes in the store, on this node or another.
func (c *Cache) watch(ctx context.Context) {
	for ctx.Err() == nil {
		err := c.store.Watch(ctx, func(change store.Change) error {
			c.noticeChange(change)
			return nil
		})
		if ctx.Err() == nil {
			c.log().Warn("changes in the store cannot be read", errField(err))
			sleep(ctx, time.Second)
		}
	}
}

// noticeChange finds out which feeds in memory a change concerns. It reads nothing: if much
// changes at a time, one read is for many feeds.
func (c *Cache) noticeChange(change store.Change) {
	c.table.changes.Add(1)
	if change.Forgotten || change.Lost {
		c.settings.Load().recorded.Store(false) // it may be configured
	}
	if change.Token == 0 { // it may be due earlier: it was restored, or poked
		c.again.Store(true)
		c.wake(c.changed)
	}
	if change.Lost {
		c.table.feeds.Range(func(_, v any) bool {
			c.readLater(v.(*Feed))
			return true
		})
		return
	}
	v, ok := c.table.ids.Load(change.ID)
	if !ok {
		return
	}
	// The record of a forgotten feed is read too: it may have come back.
	if f := v.(*Feed); !f.commits.see(change.Token) {
		c.readLater(f)
	}
}

// readLater queues feeds whose records must be read, until they can be: memory would
// not see them otherwise before the next change, or the next poll of this node.
func (c *Cache) readLater(feeds ...*Feed) {
	c.changes.mu.Lock()
	defer c.changes.mu.Unlock()
	for _, f := range feeds {
		c.changes.feeds[f] = struct{}{}
	}
	c.wake(c.changes.signal)
}

func (c *Cache) readChanges(ctx context.Context) {
	for {
		select {
		case <-c.changes.signal:
		case <-ctx.Done():
			return
		}
		if failed := c.readChanged(ctx, c.changes.take()); len(failed) > 0 {
			c.readLater(failed...)
			sleep(ctx, changedRetry)
		}
	}
}

// readChanged brings feeds up to date with the store, and returns those that could not be.
func (c *Cache) readChanged(ctx context.Context, feeds []*Feed) (failed []*Feed) {
	for batch := range slices.Chunk(feeds, readBatchSize) {
		if len(failed) > 0 || c.readBatch(ctx, batch) != nil {
			failed = append(failed, batch...)
		}
	}
	return failed
}

// readBatch reads the records of feeds at once. It fails if one of them cannot be read.
func (c *Cache) readBatch(ctx context.Context, feeds []*Feed) error {
	before, ids := make(map[*Feed]*feedstate.State, len(feeds)), make([]store.ID, 0, len(feeds))
	for _, f := range feeds {
		if !f.updatedByPoll() {
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
	for f, old := range before {
		if records[f.id] == nil && old.Version != 0 && f.users.Load() > 0 { // readers are sent it
			time.AfterFunc(changedRetry, func() { c.readLater(f) })
			continue
		}
		replaced, err := f.replaceState(ctx, old, records[f.id])
		if err == nil && !replaced {
			err = f.reload(ctx)
		}
		if err != nil {
			return err
		}
		if replaced && old.Recorded && records[f.id] == nil {
			c.forgotten([]store.ID{f.id})
		}
	}
	return nil
}

// updatedByPoll reports whether a poll under way brings the feed up to date: its request has
// left, and the record is read when it ends.
func (f *Feed) updatedByPoll() bool {
	f.outdated.Store(true)
	if f.sent() {
		return true
	}
	f.outdated.Store(false)
	return false
}

// readIfOutdated reads the record if the store has changed it during a poll.
func (f *Feed) readIfOutdated() {
	if f.outdated.Swap(false) {
		f.cache.readLater(f)
	}
}

// reload reads the feed's record from the store. If another state is published meanwhile,
// which may be newer, it reads again.
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
		if replaced, err := f.replaceState(ctx, old, record); replaced || err != nil {
			return err
		}
	}
}

// replaceState publishes the state of a record, nil if there is none, unless the state has
// changed since old.
func (f *Feed) replaceState(ctx context.Context, old *feedstate.State, record *store.Record) (replaced bool, err error) {
	next := feedstate.Unknown()
	if record != nil {
		if next, err = f.readable(ctx, old, f.stateFrom(*record, old)); err != nil {
			return false, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.setState(old, next), nil
}

// polledByOtherNode reports whether another node makes the first poll of a feed, judging by
// its record: the poll has been granted, and has no outcome yet.
func (f *Feed) polledByOtherNode(s *feedstate.State) bool {
	return s.Version == 0 && s.Leased && s.Last.At.IsZero() && s.Last.Winner == "" && f.cache.elapsed() < f.outcomeBy(s) && f.underWay() == nil
}

// outcomeBy returns until when the outcome of the last poll may come, as elapsed counts. A
// node that has not committed it by then has probably died.
func (f *Feed) outcomeBy(s *feedstate.State) time.Duration {
	return s.Granted + feedstate.Grace + f.rules().Timeout
}

func (f *Feed) awaitOtherNode(ctx context.Context, s *feedstate.State) *feedstate.State {
	ctx, cancel := context.WithTimeout(ctx, f.outcomeBy(s)-f.cache.elapsed())
	defer cancel()
	for f.polledByOtherNode(s) && sleep(ctx, otherNodeEvery) {
		s = f.state.Load()
	}
	return s
}
