// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"net/http"
	"path"
	"regexp"
	"strings"
)

// notShared returns why a request cannot be answered with a shared response whatever the origin
// says: a method that may change something, credentials, or a body. It returns "" if it can.
func notShared(r *http.Request) string {
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return "method"
	case r.Header["Authorization"] != nil:
		return "Authorization"
	case r.ContentLength != 0:
		return "body"
	}
	return ""
}

// likely reports whether a request seems to be for a feed, by its path, its query or its Accept field.
// Others go straight to the origin; only the response may show that it is a feed.
func likely(r *http.Request) bool {
	file := strings.ToLower(path.Base(r.URL.Path))
	switch path.Ext(file) {
	case ".xml", ".rss", ".atom", ".rdf":
		return true
	}
	if file == "feed.json" || feedSegment.MatchString(r.URL.Path) || feedParameter.MatchString(r.URL.RawQuery) {
		return true
	}
	for _, accept := range r.Header["Accept"] {
		for _, media := range []string{"application/rss+xml", "application/atom+xml", "application/rdf+xml", "application/feed+json"} {
			if strings.Contains(accept, media) {
				return true
			}
		}
	}
	return false
}

var (
	feedSegment   = regexp.MustCompile(`(?i)/(?:feeds?|rss2?|atom)(?:/|\.php|$)`)
	feedParameter = regexp.MustCompile(`(?i)(?:^|&)(?:feed(?:=|&|$)|[^&=]*=(?:rss2?|atom)(?:&|$))`)
)
