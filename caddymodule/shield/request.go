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

// likely reports whether a request seems to be for a feed. Others go straight to the origin;
// only the response may show that it is a feed.
func likely(r *http.Request) bool {
	return named(r) || feedWord.MatchString(r.URL.Path) || feedWord.MatchString(r.URL.RawQuery)
}

// feedWord matches a text with a word that names feeds, which digits or an s may follow.
var feedWord = regexp.MustCompile(`(?i)(?:^|[^a-z])(?:feed|rss|atom)[0-9s]*(?:$|[^a-z0-9])`)

// named reports whether the file name or the Accept field of a request is a feed's.
func named(r *http.Request) bool {
	file := path.Base(strings.ToLower(r.URL.Path))
	switch path.Ext(file) {
	case ".xml", ".rss", ".atom", ".rdf":
		return true
	}
	switch file {
	case "feed", "feeds", "feed.json", "rss", "rss2", "atom":
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
