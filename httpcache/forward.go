// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"context"
	"net/http"
	"slices"

	"github.com/feedpollard/pollard/httpfield"
)

// conditions are the request fields that make an answer depend on what its reader
// already has.
var conditions = []string{
	"If-None-Match", "If-Modified-Since", "If-Range", "Range", "If-Match", "If-Unmodified-Since",
}

// forward is a request on its way to the origin.
type forward struct {
	*http.Request
	validating *entry // what its conditions validate, if they are the cache's own
	plain      bool   // no condition of its reader is left: the answer is good for all
}

// forwardOf makes the request for the origin from a reader's: all end-to-end
// fields, and nothing of the connection. Its context is the caller's.
//
// Unless verbatim, the reader's validators and range are taken out, so that a
// complete response comes and can be stored; the cache evaluates them itself. A
// stale entry's validators take their place, verbatim or not.
func forwardOf(ctx context.Context, r *http.Request, stale *entry, verbatim bool) *forward {
	out := r.Clone(ctx)
	out.RequestURI = ""
	out.Close = false
	if r.ContentLength == 0 {
		out.Body = http.NoBody // else a transport would send an empty chunked body
	}
	httpfield.RemoveHopByHop(out.Header)
	f := &forward{Request: out}
	if stale != nil && hasValidator(stale.status, stale.header) {
		f.validating = stale
	}
	if !verbatim || f.validating != nil {
		for _, name := range conditions[:4] {
			delete(out.Header, name)
		}
	}
	f.plain = !slices.ContainsFunc(conditions, func(name string) bool { return out.Header.Get(name) != "" })
	if f.validating != nil {
		f.validating.addValidators(out.Header)
	}
	return f
}
