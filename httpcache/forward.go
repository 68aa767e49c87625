// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"slices"
	"strconv"
)

// conditions are the request fields that make an answer depend on what its reader
// already has.
var conditions = []string{
	"Range", "If-Range", "If-None-Match", "If-Modified-Since", "If-Match", "If-Unmodified-Since",
}

// forward is the request of a shared fetch.
type forward struct {
	*http.Request
	validating *entry // what its conditions validate, or nil
	completing *entry // what its range is the rest of, or nil
	plain      bool   // its answer depends on nothing that its reader has
}

// forwardOf makes the request of a shared fetch. What is stored of the same, stale
// or in part, is validated or completed. Where nothing is, a reader's range may go
// along with its conditions: a complete answer may be large.
func (x *exchange) forwardOf(stale, part *entry, ranged bool) *forward {
	out := x.target.Request()
	out.Method, out.Body, out.ContentLength = http.MethodGet, http.NoBody, 0
	for _, name := range append(conditions, "Cookie", "Authorization") {
		delete(out.Header, name)
	}
	if credentials := x.r.Header["Authorization"]; credentials != nil {
		out.Header["Authorization"] = slices.Clone(credentials)
	}
	f := &forward{Request: out, plain: !ranged}
	switch {
	case ranged:
		for _, name := range conditions[:4] {
			if values := x.r.Header[name]; values != nil {
				out.Header[name] = slices.Clone(values)
			}
		}
	case stale != nil && hasValidator(stale.status, stale.header):
		f.validating = stale
		stale.addValidators(out.Header)
	case part != nil && part.isPrefix():
		f.completing = part
		out.Header.Set("Range", "bytes="+strconv.Itoa(len(part.part.spans[0].data))+"-")
		out.Header.Set("If-Range", part.header.Get("Etag"))
	}
	return f
}

// whole makes the request ask for the complete representation.
func (f *forward) whole() {
	delete(f.Header, "Range")
	delete(f.Header, "If-Range")
	f.completing = nil
}
