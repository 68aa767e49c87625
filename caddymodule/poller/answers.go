// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedpollard/pollard/internal/readers"
)

const (
	// maxAnswers bounds the answers that wait to be counted. Each has about 300 bytes, or as many as Caddy lets
	// the header of a request have.
	maxAnswers = 1024
	// countAfter is how long an answer waits to be counted, unless statistics are read before.
	countAfter = time.Second
)

// answers are the requests that were answered and are not counted yet. Counting a reader takes locks
// and hashes, for which no reader waits.
type answers struct {
	uncounted chan readers.Request
	due       atomic.Bool // a timer counts what waits
	many      atomic.Bool // they are counted without waiting for the timer
	mu        sync.Mutex  // held while requests are counted, in their order
}

// Answered counts a request that was answered: its answer, and its reader. For a gateway's, Feed,
// UserAgent, Client, Status and Bytes are enough.
func (e *Engine) Answered(r readers.Request) {
	a := &e.counters.answers
	if len(a.uncounted) >= maxAnswers/2 && a.many.CompareAndSwap(false, true) {
		go func() {
			for len(a.uncounted) > 0 {
				e.counters.countAnswers()
			}
			a.many.Store(false)
		}()
	}
	a.uncounted <- r // waits only if requests come faster than they are counted
	if !a.due.Load() && a.due.CompareAndSwap(false, true) {
		time.AfterFunc(countAfter, e.counters.countAnswers)
	}
}

// countAnswers counts the requests that wait for it. It is called before statistics are read.
func (c *counters) countAnswers() {
	c.answers.mu.Lock()
	defer c.answers.mu.Unlock()
	c.answers.due.Store(false) // what comes from here on needs another timer
	for range len(c.answers.uncounted) {
		c.countAnswer(<-c.answers.uncounted)
	}
}

func (c *counters) countAnswer(r readers.Request) {
	shielded := IsShielded(r.Feed)
	if shielded {
		c.readers.Record(r)
	}
	if r.Status != http.StatusOK && r.Status != http.StatusNotModified {
		return // refused
	}
	feed := c.feeds.Feed(r.Feed)
	feed.CountAnswer(r.Bytes)
	if !shielded {
		feed.CountReader(c.key.Load().Reader(r.UserAgent, r.Client))
	}
}
