// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/feedpollard/pollard/cache"
)

// result is what became of a reader's request.
type result int

const (
	resultHit         result = iota // the whole feed, at once
	resultNotModified               // a 304, also after a poll
	resultStale                     // the whole feed, after a poll that was due
	resultMiss                      // the whole feed, after its first poll
	resultRefused                   // a 4xx of ours: no feed URL, not allowed, no such path, a defence
	resultUnavailable               // a 410 or 5xx of ours as nothing is stored, or the reader has left before there was an answer
	resultPassed                    // a shield has let the request through to the site
)

// results are their names in metrics.
var results = [...]string{
	resultHit:         "hit",
	resultNotModified: "not_modified",
	resultStale:       "stale",
	resultMiss:        "miss",
	resultRefused:     "refused",
	resultUnavailable: "unavailable",
	resultPassed:      "passed",
}

// resultOf is the result of a request that was served.
func resultOf(sent cache.Sent) result {
	switch {
	case sent.Status == http.StatusNotModified:
		return resultNotModified
	case sent.Forward == "":
		return resultHit
	case sent.Forward == "miss":
		return resultMiss
	}
	return resultStale
}

// requests counts the requests of one kind of handler. A hit must not wait for
// other cores that count theirs, so there are several lanes, of which each request
// takes one by chance.
type requests struct {
	lanes [16]lane
}

// lane is as long as two cache lines, which processors fetch in pairs.
type lane struct {
	results [len(results)]atomic.Uint64
	bytes   atomic.Uint64
	_       [128 - 8*(len(results)+1)]byte
}

// count counts a request, and the bytes of body that were sent for it.
func (q *requests) count(r result, bytes int64) {
	l := &q.lanes[rand.Uint32()%uint32(len(q.lanes))]
	l.results[r].Add(1)
	if bytes > 0 {
		l.bytes.Add(uint64(bytes))
	}
}

// served counts a request that was answered with the feed.
func (q *requests) served(sent cache.Sent) { q.count(resultOf(sent), sent.Bytes) }

// refused counts a request that was answered with an error of ours.
func (q *requests) refused(status int) {
	if status == http.StatusGone || status >= 500 {
		q.count(resultUnavailable, 0)
	} else {
		q.count(resultRefused, 0)
	}
}

// sums are the counts of all lanes.
type sums struct {
	results [len(results)]uint64
	bytes   uint64
}

func (q *requests) sum() (total sums) {
	for i := range q.lanes {
		l := &q.lanes[i]
		for r := range l.results {
			total.results[r] += l.results[r].Load()
		}
		total.bytes += l.bytes.Load()
	}
	return total
}

// meter is a response writer that notes what passes through it.
type meter struct {
	http.ResponseWriter
	status int
	bytes  int64
}

// Unwrap lets [http.ResponseController] find what the writer below can do.
func (m *meter) Unwrap() http.ResponseWriter { return m.ResponseWriter }

// WriteHeader implements [http.ResponseWriter].
func (m *meter) WriteHeader(status int) {
	if status >= 200 {
		m.status = status
	}
	m.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (m *meter) Write(p []byte) (int, error) {
	n, err := m.ResponseWriter.Write(p)
	m.bytes += int64(n)
	return n, err
}

// ReadFrom implements [io.ReaderFrom], for the sake of a writer below that does.
func (m *meter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.Copy(m.ResponseWriter, r)
	m.bytes += n
	return n, err
}

// countShared counts a request that the shared cache has dealt with, by the last
// member of Cache-Status, which is ours (RFC 9211 section 2).
func (q *requests) countShared(m *meter, err error) {
	lines := m.Header()["Cache-Status"]
	own := ""
	if len(lines) > 0 {
		own = lines[len(lines)-1]
	}
	switch _, forward, _ := strings.Cut(own, "; "); {
	case err != nil: // the site's own, for others to answer
		q.count(resultPassed, 0)
	case m.status == http.StatusNotModified:
		q.count(resultNotModified, 0)
	case strings.HasPrefix(forward, "hit"):
		q.count(resultHit, m.bytes)
	case strings.HasPrefix(forward, "fwd=stale"):
		q.count(resultStale, m.bytes)
	case strings.HasPrefix(forward, "fwd=uri-miss"), strings.HasPrefix(forward, "fwd=vary-miss"):
		q.count(resultMiss, m.bytes)
	case strings.HasPrefix(forward, "fwd="):
		q.count(resultPassed, 0)
	default:
		q.refused(m.status) // only-if-cached
	}
}

// Interface guards.
var (
	_ http.ResponseWriter = (*meter)(nil)
	_ io.ReaderFrom       = (*meter)(nil)
)
