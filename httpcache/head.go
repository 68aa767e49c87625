// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"strconv"
	"time"
)

// learnFromHead brings the stored response to a GET up to date with a 200 to a HEAD,
// where the two agree about the representation (RFC 9111 section 4.3.5). Where they
// do not there is nothing to do: what is fresh is not asked for, so it is stale.
func (c *Cache) learnFromHead(t *transfer, sent, received time.Time) {
	e := c.store.get(t.key).find(t.reader)
	if e == nil || !e.agreesWith(t.header) {
		return
	}
	if next := c.newEntry(t.reader, e.status, e.updated(t.header), sent, received); next != nil {
		c.keep(t, next.with(e.body))
	} else {
		c.store.drop(t.watch, t.reader)
	}
}

// agreesWith reports whether the validators and the length in the header of a HEAD
// are the entry's.
func (e *entry) agreesWith(header http.Header) bool {
	for _, name := range []string{"Etag", "Last-Modified"} {
		if got := header.Get(name); got != "" && got != e.header.Get(name) {
			return false
		}
	}
	length := header.Get("Content-Length")
	return length == "" || length == strconv.Itoa(len(e.body))
}
