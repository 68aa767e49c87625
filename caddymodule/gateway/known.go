// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/url"
	"sync"
	"sync/atomic"

	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// maxKnown is how many requests by URL are known, and maxKnownURL how long each may be.
	// Where there are too many, all are read again: a few MiB at most are held.
	maxKnown    = 1024
	maxKnownURL = 512 // bytes
)

// known are requests by URL that were admitted before, by their path: what they ask for
// need not be parsed again. Whether they may have it is asked each time. Those with a
// token are not among them.
type known struct {
	paths sync.Map // to *knownRequest
	count atomic.Int64
}

type knownRequest struct {
	query string // raw
	by    asked
	url   feedurl.URL
}

// plain reports whether a request's URL is told by path and query alone: it came so, and
// it is written in no other way.
func plain(u, original *url.URL) bool {
	return u.RawPath == "" && !u.ForceQuery &&
		(original == nil || original == u || original.Path == u.Path && original.RawPath == "")
}

// find returns what a request asks for; nil: it has to be read.
func (k *known) find(u, original *url.URL) *knownRequest {
	v, ok := k.paths.Load(u.Path)
	if !ok {
		return nil
	}
	if r := v.(*knownRequest); r.query == u.RawQuery && plain(u, original) {
		return r
	}
	return nil
}

// add remembers a request.
func (k *known) add(u, original *url.URL, by asked, feed feedurl.URL) {
	if !plain(u, original) || len(u.Path)+len(u.RawQuery) > maxKnownURL || len(feed.String()) > maxKnownURL {
		return
	}
	if k.count.Add(1) > maxKnown {
		k.paths.Clear()
		k.count.Store(1)
	}
	k.paths.Store(u.Path, &knownRequest{u.RawQuery, by, feed})
}
