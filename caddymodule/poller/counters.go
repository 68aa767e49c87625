// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

const (
	// saveEvery is how often counters are saved. A crash loses the counts since the last
	// save; a regular exit saves all.
	saveEvery = 10 * time.Minute
	// saveTimeout bounds the last save.
	saveTimeout = 10 * time.Second
	// countersFor is how long the counters of a node are kept after it has stopped.
	countersFor = 90 * 24 * time.Hour
	// othersFor is how long the counters of other nodes are reused before they are read again.
	othersFor = time.Minute
	// maxSaved bounds each list that a node saves: feeds, readers, traffic. If the
	// store does not take that much, the bound is halved until it does.
	maxSaved = 4096
	// maxDecoded bounds the size of a node's counters when they are read, in bytes.
	maxDecoded = 64 << 20
)

// counters are the statistics of readers and polls. Each node counts in memory and
// saves its counters as one value in the store. The counters of all nodes are merged
// when they are shown.
type counters struct {
	feeds   *readers.Feeds
	earlier *readers.Feeds      // what the edition before has counted, by hashes without a key
	readers *readers.Statistics // of shields
	traffic *traffic
	answers answers
	key     atomic.Pointer[ownerKey] // never nil
	log     func() *zap.Logger       // of the configuration in force
	stop    chan struct{}
	ended   chan struct{}

	mu       sync.Mutex // guards all below; held during calls of the store
	node     string     // this node's name in the store
	store    Database
	loaded   bool // whether the saved counters of this node have been read
	others   map[string]*savedCounters
	read     time.Time // when others were read
	reported bool      // whether the failure of the store has been logged
}

func newCounters(log func() *zap.Logger) *counters {
	t := &traffic{counts: make(map[trafficKey]status.Traffic)}
	c := &counters{
		feeds: readers.NewFeeds(t.countAnswers), earlier: readers.NewFeeds(nil), readers: readers.NewStatistics(readers.Period), traffic: t,
		answers: answers{uncounted: make(chan readers.Request, maxAnswers)},
		log:     log, stop: make(chan struct{}), ended: make(chan struct{}),
	}
	c.key.Store(newOwnerKey([]byte(rand.Text()))) // until the store is open
	return c
}

// open reads the saved counters and starts to save them regularly. node is this node's
// name in the store; it should be the same in the next process.
func (c *counters) open(ctx context.Context, s Database, node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store, c.node = s, node
	if secret, err := s.Secret(ctx); err == nil {
		c.key.Store(newOwnerKey(secret))
	} else {
		c.log().Warn("the store's key cannot be read: readers are taken to be new until the next start", zap.Error(err))
	}
	c.load(ctx, time.Now())
	go c.run()
}

func (c *counters) run() {
	defer close(c.ended)
	tick := time.NewTicker(saveEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.save(context.Background())
		case <-c.stop:
			ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
			defer cancel()
			c.save(ctx)
			return
		}
	}
}

// close saves for the last time.
func (c *counters) close() {
	close(c.stop)
	<-c.ended
}

// load reads the counters of all nodes, and resumes those of this one.
func (c *counters) load(ctx context.Context, now time.Time) {
	c.read = now
	all, err := c.store.Counters(ctx)
	if err != nil {
		c.report(fmt.Errorf("reading counters: %w", err))
		return
	}
	c.others = make(map[string]*savedCounters)
	for node, data := range all {
		if node == c.node && c.loaded {
			continue
		}
		saved, err := decodeCounters(data)
		if err == nil && data[0] < countersVersion { // what is not kept any more goes at once
			if data, err = saved.encode(); err == nil {
				err = c.store.SaveCounters(ctx, node, data)
			}
			if err != nil {
				c.report(fmt.Errorf("saving counters: %w", err))
				err = nil
			}
		}
		switch {
		case node == c.node && err != nil:
			c.log().Error("the statistics that were saved cannot be read: they begin empty", zap.Error(err))
		case err != nil:
			c.log().Warn("the statistics of another node cannot be read: they are left out", zap.String("node", node), zap.Error(err))
		case node != c.node:
			c.others[node] = saved
		default:
			c.readers.Resume(saved.Readers)
			c.merge(saved, now)
			c.traffic.resume(saved.Traffic)
		}
	}
	c.loaded = true
	for _, saved := range c.others {
		c.merge(saved, now)
	}
}

// merge adds the readers of feeds that a node has counted.
func (c *counters) merge(saved *savedCounters, now time.Time) {
	c.feeds.MergeSketches(saved.Sketches, now)
	c.earlier.MergeSketches(saved.Earlier, now)
}

// save saves the counters of this node, and removes those of nodes that have stopped.
func (c *counters) save(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.load(ctx, now); !c.loaded {
		return // saving would overwrite the counters that could not be read
	}
	data, err := c.encode(now)
	if err == nil {
		err = c.store.SaveCounters(ctx, c.node, data)
	}
	if err != nil {
		c.report(fmt.Errorf("saving counters: %w", err))
		return
	}
	if c.reported {
		c.log().Info("the statistics of readers and polls are saved again")
	}
	c.reported = false
	for node, saved := range c.others {
		if now.Sub(saved.Saved) > countersFor {
			_ = c.store.SaveCounters(ctx, node, nil) // if it fails, the next save tries again
		}
	}
}

// report logs the first of several failures.
func (c *counters) report(err error) {
	if !c.reported {
		c.log().Warn("the statistics of readers and polls cannot be saved: they are kept in memory", zap.Error(err))
	}
	c.reported = true
}

// merged returns the saved counters of the other nodes, in the order of their names.
func (c *counters) merged(ctx context.Context) (others []*savedCounters) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if age := now.Sub(c.read); c.store != nil && (age > othersFor || age < 0) {
		c.load(ctx, now)
	}
	for _, node := range slices.Sorted(maps.Keys(c.others)) {
		if saved := c.others[node]; now.Sub(saved.Saved) <= countersFor {
			others = append(others, saved)
		}
	}
	return others
}

func (c *counters) forget(feeds []string) {
	c.countAnswers()
	for _, feed := range feeds {
		c.feeds.Forget(feed)
		c.earlier.Forget(feed)
		c.readers.Forget(feed)
	}
}

// savedCounters are the counters of a node in the form in which they are saved.
type savedCounters struct {
	Saved    time.Time            `json:"saved"`
	Sketches []readers.FeedSketch `json:"sketches,omitempty"` // of the readers of feeds
	Earlier  []readers.FeedSketch `json:"earlier,omitempty"`  // by hashes of the edition before
	Readers  readers.Snapshot     `json:"readers"`            // of shields
	Traffic  []savedTraffic       `json:"traffic,omitempty"`
}

// countersVersion is the first byte of saved counters. JSON, compressed by gzip, follows.
const countersVersion = 4

// encode returns the counters of this node, in at most [store.MaxCounters] bytes.
func (c *counters) encode(now time.Time) ([]byte, error) {
	c.countAnswers()
	for limit := maxSaved; ; limit /= 2 {
		saved := savedCounters{
			Saved: now, Readers: c.readers.Snapshot(now, limit),
			Sketches: c.feeds.Sketches(now, limit), Earlier: c.earlier.Sketches(now, limit),
		}
		c.feeds.Take(c.traffic.countAnswers)
		saved.Traffic = c.traffic.saved(limit)
		data, err := saved.encode()
		if err != nil || len(data) <= store.MaxCounters || limit == 0 {
			return data, err
		}
	}
}

func (s *savedCounters) encode() ([]byte, error) {
	var data bytes.Buffer
	data.WriteByte(countersVersion)
	w, err := gzip.NewWriterLevel(&data, gzip.BestSpeed) // it is written every 10 minutes
	if err := errors.Join(err, json.NewEncoder(w).Encode(s), w.Close()); err != nil {
		return nil, fmt.Errorf("encoding counters: %w", err)
	}
	return data.Bytes(), nil
}

// decodeCounters decodes the saved counters of a node. Of those of version 3, the readers of
// gateways are dropped, and the sketches are [savedCounters.Earlier].
func decodeCounters(data []byte) (*savedCounters, error) {
	if len(data) == 0 || data[0] != countersVersion && data[0] != 3 {
		return nil, errors.New("they were written by another version")
	}
	r, err := gzip.NewReader(bytes.NewReader(data[1:]))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(r, maxDecoded+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxDecoded {
		return nil, fmt.Errorf("they take more than %d bytes", maxDecoded)
	}
	saved := new(savedCounters)
	if err := json.Unmarshal(text, saved); err != nil {
		return nil, err
	}
	if data[0] == 3 {
		saved.Sketches, saved.Earlier = nil, saved.Sketches
		for i, list := range saved.Readers {
			saved.Readers[i] = slices.DeleteFunc(list, func(c readers.Counters) bool { return !IsShielded(c.Feed) })
		}
	}
	return saved, nil
}

// Readers returns the statistics of the readers of shields, on all nodes.
func (e *Engine) Readers(ctx context.Context, o readers.ReportOptions) status.ReaderReport {
	o.Now = time.Now()
	for _, saved := range e.counters.merged(ctx) {
		o.Others = append(o.Others, saved.Readers)
	}
	e.counters.countAnswers()
	return e.counters.readers.Report(o)
}

// Subscribers estimates how many readers a feed had in the last week or two, on all nodes.
func (e *Engine) Subscribers(feed string) int {
	e.counters.countAnswers()
	now := time.Now()
	return max(e.counters.feeds.Subscribers(feed, now), e.counters.earlier.Subscribers(feed, now))
}
