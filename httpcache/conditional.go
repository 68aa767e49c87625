// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

// notModified evaluates a reader's conditions against a response that would be
// served otherwise (RFC 9111 section 4.3.2). An error stays an error: conditions
// have no say in what is no success (RFC 9110 section 13.2.1).
func notModified(request http.Header, status int, header http.Header, now time.Time) bool {
	if status < 200 || status > 299 {
		return false
	}
	etag := httpfield.ParseTag(header.Get("Etag"))
	return httpfield.NotModified(request["If-None-Match"], request["If-Modified-Since"], etag.Equal, func(date string) bool {
		since, err := policy.ParseHTTPDate(date, now)
		if err != nil {
			return false // RFC 9110 section 13.1.3: what is no date is ignored
		}
		modified, err := dateOf(header, "Last-Modified", now)
		if err != nil {
			// RFC 9111 section 4.3.2: without a Last-Modified the Date stands for it.
			modified, err = dateOf(header, "Date", now)
		}
		// Nothing is known of the future, but an origin's clock may be fast.
		return err == nil && (modified.Equal(since) || modified.Before(since) && !since.After(now))
	})
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
