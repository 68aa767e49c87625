// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"math/rand/v2"
	"net/http"
	"sync/atomic"

	"github.com/feedpollard/pollard/cache"
)

// Result is what became of a reader's request.
type Result int

const (
	ResultHit         Result = iota // the whole feed, at once
	ResultNotModified               // a 304, also after a poll
	ResultStale                     // the whole feed, after a poll that was due
	ResultMiss                      // the whole feed, after its first poll
	ResultRefused                   // a 4xx of ours: no feed URL, not allowed, no such path, a defence
	ResultUnavailable               // a 410 or 5xx of ours as nothing is stored, or the reader has left before there was an answer
	ResultPassed                    // a shield has let the request through to the site
	ResultMoved                     // a redirect to a feed that the one asked for leads to
	ResultQueued                    // an empty feed, as the first poll waits for its turn
)

// results are their names in metrics.
var results = [...]string{
	ResultHit:         "hit",
	ResultNotModified: "not_modified",
	ResultStale:       "stale",
	ResultMiss:        "miss",
	ResultRefused:     "refused",
	ResultUnavailable: "unavailable",
	ResultPassed:      "passed",
	ResultMoved:       "moved",
	ResultQueued:      "queued",
}

// ResultOf is the result of a request that was served.
func ResultOf(sent cache.Sent) Result {
	switch {
	case sent.Status == http.StatusNotModified:
		return ResultNotModified
	case sent.Forward == "":
		return ResultHit
	case sent.Forward == "miss":
		return ResultMiss
	}
	return ResultStale
}

// String is the result's name in metrics and logs.
func (r Result) String() string { return results[r] }

// Requests counts the requests of one kind of handler. A hit must not wait for
// other cores that count theirs, so there are several lanes, of which each request
// takes one by chance.
type Requests struct {
	lanes [16]lane
}

// lane is as long as two cache lines, which processors fetch in pairs.
type lane struct {
	results [len(results)]atomic.Uint64
	bytes   atomic.Uint64
	_       [128 - 8*(len(results)+1)]byte
}

// Count counts a request, and the bytes of body that were sent for it.
func (q *Requests) Count(r Result, bytes int64) {
	l := &q.lanes[rand.Uint32()%uint32(len(q.lanes))]
	l.results[r].Add(1)
	if bytes > 0 {
		l.bytes.Add(uint64(bytes))
	}
}

// Served counts a request that was answered with the feed.
func (q *Requests) Served(sent cache.Sent) { q.Count(ResultOf(sent), sent.Bytes) }

// Refused counts a request that was answered with an error of ours, and returns the
// result that it counts as.
func (q *Requests) Refused(status int) Result {
	result := ResultRefused
	if status == http.StatusGone || status >= 500 {
		result = ResultUnavailable
	}
	q.Count(result, 0)
	return result
}

// sums are the counts of all lanes.
type sums struct {
	results [len(results)]uint64
	bytes   uint64
}

func (q *Requests) sum() (total sums) {
	for i := range q.lanes {
		l := &q.lanes[i]
		for r := range l.results {
			total.results[r] += l.results[r].Load()
		}
		total.bytes += l.bytes.Load()
	}
	return total
}
