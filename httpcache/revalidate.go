// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"slices"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// hasValidator reports whether a response can be revalidated. One that is no
// success can not: a 304 would confirm what the URL has now, not the error that
// was stored.
func hasValidator(status int, header http.Header) bool {
	return 200 <= status && status <= 299 && (header.Get("Etag") != "" || header.Get("Last-Modified") != "")
}

// addValidators puts the entry's validators into a request, byte for byte as the
// origin gave them (RFC 9111 section 4.3.1).
func (e *entry) addValidators(request http.Header) {
	if etag := e.header.Get("Etag"); etag != "" {
		request.Set("If-None-Match", etag)
	}
	if modified := e.header.Get("Last-Modified"); modified != "" {
		request.Set("If-Modified-Since", modified)
	}
}

// notUpdated are fields that a 304 does not change: they describe the stored body,
// and many origins send others with a 304 that has none (RFC 9111 section 3.2).
var notUpdated = []string{"Content-Encoding", "Content-Length", "Content-Range", "Content-Type"}

// updated is the header that an entry has after an answer confirmed it (RFC 9111
// section 3.2).
func (e *entry) updated(header http.Header) http.Header {
	merged := e.header.Clone()
	// Age and freshness count from the new answer.
	merged.Del("Date")
	for name, values := range header {
		if !slices.Contains(notUpdated, name) {
			merged[name] = values
		}
	}
	return merged
}

// confirmedBy reports whether a 304 may update the entry: where it has a strong
// entity tag, that must be the entry's own, and a weak one must match weakly (RFC
// 9111 section 4.3.4).
func (e *entry) confirmedBy(header http.Header) bool {
	if header.Get("Etag") == "" {
		return true
	}
	has, got := httpfield.ParseTag(e.header.Get("Etag")), httpfield.ParseTag(header.Get("Etag"))
	return has.Equal(got) && (got.Weak || !has.Weak)
}
