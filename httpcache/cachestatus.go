// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"strconv"
	"time"
)

// How a request was dealt with, in the terms of RFC 9211 section 2.2.
const (
	fwdMethod  = "method"
	fwdBypass  = "bypass"
	fwdRequest = "request"
	fwdPartial = "partial"
	fwdURIMiss = "uri-miss"
	fwdVary    = "vary-miss"
	fwdStale   = "stale"
)

// cacheStatus is what the cache says of its part in an answer (RFC 9211).
type cacheStatus struct {
	fwd       string // why the request went to the origin; empty: it was a hit
	fwdStatus int    // what the origin answered; 0: nothing, or it does not matter
	stored    bool
	collapsed bool
	entry     *entry // whose remaining lifetime is told, or nil
	detail    string // a token
}

// add appends the cache's member: it is the one closest to the reader.
func (s cacheStatus) add(header http.Header, now time.Time) {
	member := "Pollard"
	if s.fwd == "" {
		member += "; hit"
	} else {
		member += "; fwd=" + s.fwd
	}
	if s.fwdStatus != 0 {
		member += "; fwd-status=" + strconv.Itoa(s.fwdStatus)
	}
	if s.entry != nil {
		member += "; ttl=" + strconv.FormatInt(int64(s.entry.left(now)/time.Second), 10)
	}
	if s.stored {
		member += "; stored"
	}
	if s.collapsed {
		member += "; collapsed"
	}
	if s.detail != "" {
		member += "; detail=" + s.detail
	}
	header.Add("Cache-Status", member)
}
