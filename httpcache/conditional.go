// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"strings"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// notModified evaluates a reader's conditions against a response that would be
// served otherwise (RFC 9111 section 4.3.2, RFC 9110 section 13.2.2). If-Match and
// If-Unmodified-Since are not for caches. Where there is an If-None-Match,
// If-Modified-Since does not count. An error stays an error: conditions have no
// say in what is no success (RFC 9110 section 13.2.1).
func notModified(request http.Header, status int, header http.Header, now time.Time) bool {
	if status < 200 || status > 299 {
		return false
	}
	if lists := request["If-None-Match"]; len(lists) > 0 {
		for _, list := range lists {
			if matchesTag(list, header.Get("Etag")) {
				return true
			}
		}
		return false
	}
	dates := request["If-Modified-Since"]
	if len(dates) != 1 {
		return false
	}
	since, err := policy.ParseHTTPDate(dates[0], now)
	if err != nil {
		return false // RFC 9110 section 13.1.3: what is no date is ignored
	}
	modified, err := dateOf(header, "Last-Modified", now)
	if err != nil {
		// RFC 9111 section 4.3.2: without a Last-Modified the Date stands for it.
		modified, err = dateOf(header, "Date", now)
	}
	return err == nil && !modified.After(since)
}

// matchesTag reports whether a list of entity tags has one, by weak comparison
// (RFC 9110 sections 8.8.3.2 and 13.1.2), or is "*". Tags without quotes, which
// some origins send and readers repeat, are met with tolerance.
func matchesTag(list, etag string) bool {
	if strings.TrimSpace(list) == "*" {
		return true // any current representation will do, and there is one
	}
	want := opaque(etag)
	for _, tag := range splitList(list) {
		if want != "" && opaque(tag) == want {
			return true
		}
	}
	return false
}

// opaque is an entity tag without its weakness and its quotes, in which "" can
// not be a tag: nothing that an empty tag says could tell two versions apart.
func opaque(tag string) string {
	if len(tag) > 2 && (tag[0] == 'W' || tag[0] == 'w') && tag[1] == '/' {
		tag = tag[2:]
	}
	if len(tag) >= 2 && tag[0] == '"' && tag[len(tag)-1] == '"' {
		return tag[1 : len(tag)-1]
	}
	return tag
}

// isWeak reports whether an entity tag is no strong validator.
func isWeak(tag string) bool {
	return strings.HasPrefix(tag, "W/") || strings.HasPrefix(tag, "w/")
}

// withoutRepresentation drops from the header of a 304 what describes a body that
// is not there. RFC 9110 section 15.4.5 keeps of the representation's metadata
// only Content-Location, ETag, and the Last-Modified where there is no ETag.
func withoutRepresentation(header http.Header) {
	for name := range header {
		if strings.HasPrefix(name, "Content-") && name != "Content-Location" && name != "Content-Security-Policy" {
			delete(header, name)
		}
	}
	if header.Get("Etag") != "" {
		header.Del("Last-Modified")
	}
}
