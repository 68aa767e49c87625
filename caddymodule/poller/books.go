// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/figures"
	"github.com/feedpollard/pollard/internal/readers"
)

const (
	// bookEvery is how often what has been counted goes to the store: what a crash may
	// cost. A process that ends in peace loses nothing.
	bookEvery = time.Minute
	// tidyEvery is how often figures are dropped that count no more, and those of other
	// nodes are read where no page asks for them.
	tidyEvery = time.Hour
	// senderFor is how long a node is remembered that adds nothing any more.
	senderFor = 30 * 24 * time.Hour
	// maxForgotten bounds the feeds whose figures are to be dropped. Beyond it they go
	// when their period is over.
	maxForgotten = 10_000
	// closing bounds the last flush.
	closing = 10 * time.Second
)

// books are what an engine has counted: in its own memory, and in the store, where it
// outlives the process and nodes add up. What has been counted is taken out of memory,
// and stays in batches until the store has them. While the store is away memory goes
// on counting, within its own bounds, and no second set of batches is made.
type books struct {
	census  *readers.Census
	ledger  *readers.Ledger
	traffic *traffic
	node    string
	log     *atomic.Pointer[zap.Logger] // of the configuration in force
	off     *atomic.Bool                // nothing of readers is stored
	stop    chan struct{}
	resumed chan struct{} // closed when what was counted before has been read
	ended   chan struct{}

	mu        sync.Mutex // guards all below; held while the store is asked
	store     figures.Store
	number    uint64 // of the last batch
	unsent    []*figures.Batch
	forgotten []string // feeds
	away      error    // why the store does not take figures
	added     int      // figures of readers since they were tidied
	tidied    time.Time

	present map[figures.Kind][]figures.Figure // as read since the last flush
	latest  map[figures.Kind][]figures.Figure // as read last, for while the store is away
}

func newBooks(e *Engine) *books {
	return &books{
		census: e.Census, ledger: e.Ledger, traffic: e.traffic, log: &e.log, off: &e.unobserved, node: rand.Text(),
		stop: make(chan struct{}), resumed: make(chan struct{}), ended: make(chan struct{}),
		present: make(map[figures.Kind][]figures.Figure), latest: make(map[figures.Kind][]figures.Figure),
	}
}

// open begins with a store, before anything is counted. One that keeps no figures
// leaves them to memory.
func (b *books) open(ctx context.Context, store any, log *zap.Logger) {
	kept, ok := store.(figures.Store)
	if !ok {
		kept = new(figures.Memory)
	}
	seed, err := kept.FigureSeed(ctx)
	if err != nil {
		log.Warn("figures of readers and savings are kept in memory only, until the next start", zap.Error(err))
		kept = new(figures.Memory)
		seed, _ = kept.FigureSeed(ctx)
	}
	b.store, b.tidied = kept, time.Now()
	b.census.Use(seed)
	b.ledger.Use(seed)
	go b.run()
}

// run flushes until the engine ends.
func (b *books) run() {
	defer close(b.ended)
	b.resume()
	tick := time.NewTicker(bookEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.flush(context.Background())
		case <-b.stop:
			ctx, cancel := context.WithTimeout(context.Background(), closing)
			b.flush(ctx)
			cancel()
			return
		}
	}
}

// close flushes for the last time. The store is closed after it.
func (b *books) close() {
	if b.store == nil {
		return
	}
	close(b.stop)
	<-b.ended
}

// resume reads what readers did before this process, and on other nodes.
func (b *books) resume() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	b.ledger.Resume(b.stored(context.Background(), now))
	b.countTogether(context.Background(), now)
	close(b.resumed)
}

// countTogether takes over the readers that other nodes, or earlier processes, have counted.
func (b *books) countTogether(ctx context.Context, now time.Time) {
	b.census.Recall(b.read(ctx, figures.Tally), now)
	delete(b.present, figures.Tally) // large, and of no use to anybody else
	delete(b.latest, figures.Tally)
}

// flush brings what has been counted to the store.
func (b *books) flush(ctx context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.present)
	if b.send(ctx) != nil {
		return
	}
	now := time.Now()
	b.collect(ctx, now)
	if b.send(ctx) != nil {
		return
	}
	if due := now.Sub(b.tidied) >= tidyEvery; due || b.added > maxAdded {
		b.tidy(ctx, now)
		if due {
			b.countTogether(ctx, now)
		}
	}
}

// maxAdded is how many figures of readers come to the store before it is looked how
// many there are.
const maxAdded = 4096

// collect takes what has been counted out of memory.
func (b *books) collect(ctx context.Context, now time.Time) {
	counted, answered := b.ledger.Take(now)
	for i := range counted {
		if counted[i].Kind == figures.Reader {
			b.added++
		}
	}
	counted = append(counted, b.traffic.take(answered, now)...)
	if !b.off.Load() {
		counted = append(counted, b.census.Take(now)...)
	}
	b.add(counted, b.forgetting(ctx, now), now)
}

// add puts figures and moves into batches.
func (b *books) add(counted []figures.Figure, moves []figures.Move, now time.Time) {
	batch := func() *figures.Batch {
		b.number++
		next := &figures.Batch{Node: b.node, Number: b.number, At: now}
		b.unsent = append(b.unsent, next)
		return next
	}
	for part := range slices.Chunk(counted, figures.MaxBatch) {
		batch().Add = part
	}
	for part := range slices.Chunk(moves, figures.MaxBatch) {
		batch().Move = part
	}
}

// forgetting drops the figures of feeds that are forgotten.
func (b *books) forgetting(ctx context.Context, now time.Time) (moves []figures.Move) {
	for len(b.forgotten) > 0 {
		for _, kind := range [...]figures.Kind{figures.Feed, figures.Family, figures.Reader} {
			for _, prefix := range b.ledger.OfFeed(b.forgotten[0], now) {
				found, err := b.store.Figures(ctx, kind, prefix)
				if err != nil {
					return moves // the others wait
				}
				for i := range found {
					moves = append(moves, figures.Move{From: found[i].Ref})
				}
			}
		}
		for _, ref := range b.census.OfFeed(b.forgotten[0], now) {
			moves = append(moves, figures.Move{From: ref})
		}
		b.forgotten = b.forgotten[1:]
	}
	b.forgotten = nil
	return moves
}

// send gives the store what it does not have yet, the oldest first.
func (b *books) send(ctx context.Context) error {
	for len(b.unsent) > 0 {
		if err := b.store.AddFigures(ctx, b.unsent[0]); err != nil {
			if b.away == nil {
				b.log.Load().Warn("what readers and sites were counted for cannot be stored: it waits in memory", zap.Error(err))
			}
			b.away = err
			return err
		}
		b.unsent[0] = nil
		b.unsent = b.unsent[1:]
	}
	b.unsent = nil
	if b.away != nil {
		b.log.Load().Info("what readers and sites were counted for can be stored again")
	}
	b.away = nil
	return nil
}

// tidy keeps the store within its bounds.
func (b *books) tidy(ctx context.Context, now time.Time) {
	b.tidied, b.added = now, 0
	all := make(map[figures.Kind][]figures.Figure)
	for _, kind := range [...]figures.Kind{figures.Feed, figures.Family, figures.Reader, figures.Day, figures.Origin, figures.Tally} {
		found, err := b.store.Figures(ctx, kind, "")
		if err != nil {
			return // the next time
		}
		all[kind] = found
	}
	moves, err := figures.Senders(ctx, b.store, now.Add(-senderFor))
	if err != nil {
		return
	}
	moves = slices.Concat(moves, readers.Outdated(all[figures.Feed], all[figures.Family], all[figures.Reader], now),
		readers.OutdatedTallies(all[figures.Tally], now), outdatedTraffic(all[figures.Day], all[figures.Origin], now))
	b.add(nil, moves, now)
	_ = b.send(ctx) // what cannot be sent waits
}

// read is what the store has of a kind, with what it does not have yet. Where it is
// away, it is what it had when it was asked last.
func (b *books) read(ctx context.Context, kind figures.Kind) []figures.Figure {
	if _, ok := b.present[kind]; !ok {
		_ = b.send(ctx) // or what an attempt has brought there would count twice
		if found, err := b.store.Figures(ctx, kind, ""); err == nil {
			b.present[kind], b.latest[kind] = found, found
		}
	}
	found := slices.Clip(b.latest[kind])
	for _, batch := range b.unsent {
		for _, f := range batch.Add {
			if f.Kind == kind {
				found = append(found, f)
			}
		}
	}
	return found
}

// stored is what the store knows of readers.
func (b *books) stored(ctx context.Context, now time.Time) *readers.Stored {
	return b.ledger.Recall(b.read(ctx, figures.Feed), b.read(ctx, figures.Family), b.read(ctx, figures.Reader), now)
}

// forget has the figures of a feed dropped.
func (b *books) forget(feed string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.forgotten) < maxForgotten {
		b.forgotten = append(b.forgotten, feed)
	}
}

// Readers is what is known of readers, on all nodes.
func (e *Engine) Readers(ctx context.Context, o readers.ReportOptions) readers.Report {
	b := e.books
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store != nil {
		o.Stored = b.stored(ctx, time.Now())
	}
	return b.ledger.Report(o)
}

// Subscribers is how many readers a feed has had in the last week or two, on all nodes.
// It waits until those of before this process are known, which a poll does not.
func (e *Engine) Subscribers(ctx context.Context, feed string) int {
	select {
	case <-e.books.resumed:
	case <-ctx.Done():
	}
	return e.Census.Count(feed, time.Now())
}
