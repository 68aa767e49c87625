// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/url"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// maxParsed and maxParsedURL bound the memory of parsedRequests to a few MiB.
	maxParsed    = 1024
	maxParsedURL = 512 // bytes
)

// parsedRequests holds what requests by URL ask for, so that a hit parses no URL. Access is
// checked for each request. Requests with a token are not stored. The oldest entry makes room:
// a lookup does not reorder entries, because that would need an exclusive lock.
type parsedRequests struct {
	byPath *lru.Cache[string, *parsedRequest]
}

type parsedRequest struct {
	query string // raw
	by    urlRequest
	url   feedurl.URL
}

func newParsedRequests() parsedRequests {
	byPath, err := lru.New[string, *parsedRequest](maxParsed)
	if err != nil {
		panic(err) // the size is not positive
	}
	return parsedRequests{byPath}
}

// plain reports whether path and query alone determine a request's URL: no handler has
// rewritten it, and it has no other spelling.
func plain(u, original *url.URL) bool {
	return u.RawPath == "" && !u.ForceQuery &&
		(original == nil || original == u || original.Path == u.Path && original.RawPath == "")
}

// find returns what a request asks for, or nil if it must be parsed.
func (p parsedRequests) find(u, original *url.URL) *parsedRequest {
	if r, ok := p.byPath.Peek(u.Path); ok && r.query == u.RawQuery && plain(u, original) {
		return r
	}
	return nil
}

// add stores a parsed request.
func (p parsedRequests) add(u, original *url.URL, by urlRequest, feed feedurl.URL) {
	if plain(u, original) && len(u.Path)+len(u.RawQuery) <= maxParsedURL && len(feed.String()) <= maxParsedURL {
		p.byPath.Add(u.Path, &parsedRequest{u.RawQuery, by, feed})
	}
}
