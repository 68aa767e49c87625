// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"net/http"
	"path"
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
	if named(r) {
		return true
	}
	name, query := strings.ToLower(r.URL.Path), strings.ToLower(r.URL.RawQuery)
	for _, word := range []string{"feed", "rss", "atom"} {
		if hasWord(name, word) || hasWord(query, word) {
			return true
		}
	}
	return false
}

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

// hasWord reports whether a text contains a word, which digits or an s may follow.
func hasWord(text, word string) bool {
	for from := 0; ; {
		i := strings.Index(text[from:], word)
		if i < 0 {
			return false
		}
		i += from
		end := i + len(word)
		for end < len(text) && (text[end] >= '0' && text[end] <= '9' || text[end] == 's') {
			end++
		}
		if (i == 0 || !isLetter(text[i-1])) && (end == len(text) || !isLetter(text[end])) {
			return true
		}
		from = i + 1
	}
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' }
