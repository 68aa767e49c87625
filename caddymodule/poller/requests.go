// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"
	"sync/atomic"

	"github.com/feedpollard/pollard/cache"
)

// Result is the result of a reader's request.
type Result int

const (
	ResultHit         Result = iota // the whole feed, from the cache
	ResultNotModified               // a 304, also after a poll
	ResultStale                     // the whole feed, after a poll that was due
	ResultMiss                      // the whole feed, after its first poll
	ResultRefused                   // a 4xx: not a feed URL, not allowed, no such path, a shield's defend
	ResultUnavailable               // a 410 or 5xx, because no version is stored, or the reader left before the answer
	ResultPassed                    // a shield has passed the request on to the site
	ResultMoved                     // a redirect to another feed
	ResultQueued                    // an empty feed, because the first poll waits for its turn
)

// results are the names of results in metrics and logs.
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

// ResultOf returns the result of a request that was answered with the feed.
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

// String returns the result's name in metrics and logs.
func (r Result) String() string { return results[r] }

// Requests counts the requests of one kind of handler.
type Requests struct {
	results [len(results)]atomic.Uint64
	bytes   atomic.Uint64
}

// Count counts a request, and the bytes of body that were sent for it.
func (q *Requests) Count(r Result, bytes int64) {
	q.results[r].Add(1)
	if bytes > 0 {
		q.bytes.Add(uint64(bytes))
	}
}

// Served counts a request that was answered with the feed.
func (q *Requests) Served(sent cache.Sent) { q.Count(ResultOf(sent), sent.Bytes) }

// Refused counts a request that was answered with an error, and returns its result.
func (q *Requests) Refused(status int) Result {
	result := ResultRefused
	if status == http.StatusGone || status >= 500 {
		result = ResultUnavailable
	}
	q.Count(result, 0)
	return result
}
