// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// safeMethods are the methods that the registry calls safe (RFC 9110 section 16.1.1,
// RFC 4918, RFC 3253, RFC 5323, and QUERY). Any other is unsafe, known or not.
var safeMethods = []string{"GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH", "QUERY"}

// invalidate forgets what an unsafe request has changed: after an answer that is
// no error the target, and what Location and Content-Location name at the same
// origin (RFC 9111 section 4.4).
func (x *exchange) invalidate(status int, header http.Header) {
	if slices.Contains(safeMethods, x.r.Method) || status < 200 || status > 399 {
		return
	}
	x.cache.store.invalidate(x.target.Key)
	for _, name := range []string{"Location", "Content-Location"} {
		if other := sameOrigin(x.target.URL, header.Get(name)); other != nil && x.target.KeyOf != nil {
			if key := x.target.KeyOf(other); key != "" {
				x.cache.store.invalidate(key)
			}
		}
	}
}

// sameOrigin resolves a reference against a URL; it is nil for what has another
// origin (RFC 9110 section 4.3.1).
func sameOrigin(base *url.URL, reference string) *url.URL {
	if base == nil || reference == "" {
		return nil
	}
	target, err := base.Parse(reference)
	if err != nil || target.Scheme != base.Scheme || !strings.EqualFold(target.Host, base.Host) {
		return nil
	}
	target.Host, target.User = base.Host, nil
	target.Fragment, target.RawFragment = "", ""
	return target
}
