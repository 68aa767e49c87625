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
func (c *Cache) invalidate(method, key string, status int, header http.Header) {
	if slices.Contains(safeMethods, method) || status < 200 || status > 399 {
		return
	}
	c.store.invalidate(key)
	for _, name := range []string{"Location", "Content-Location"} {
		if other, ok := sameOrigin(key, header.Get(name)); ok && other != key {
			c.store.invalidate(other)
		}
	}
}

// sameOrigin resolves a reference against a key, which is a URL; it is false for
// what has another origin (RFC 9110 section 4.3.1).
func sameOrigin(key, reference string) (string, bool) {
	base, err := url.Parse(key)
	if err != nil || reference == "" {
		return "", false
	}
	target, err := base.Parse(reference)
	if err != nil {
		return "", false
	}
	target.Fragment, target.RawFragment = "", ""
	return target.String(), target.Scheme == base.Scheme && strings.EqualFold(target.Host, base.Host)
}
