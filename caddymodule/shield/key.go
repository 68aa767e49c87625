// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// maxKey is the longest key, in bytes. Requests with longer ones are not shared.
const maxKey = 4096

// keyOf returns the key of a request. The poll of the key has the same normal form: otherwise one
// site would be many, and one reader could choose the port that a site writes into the links of a
// feed for all. It reports false if the request cannot be shared: its Host is not a host, or the key is
// too long.
func (s *Shield) keyOf(r *door.Request) (poller.ShieldKey, bool) {
	k := poller.ShieldKey{Shield: s.identity, Scheme: r.Scheme}
	var err error
	if k.Host, err = s.entries.hostPort(k.Scheme, r.Host); err != nil {
		return k, false
	}
	if r.Forwarded != "" {
		if name, err := feedurl.HostPort(k.Scheme, r.Forwarded); err == nil && name != k.Host {
			k.Forwarded = name
		}
	}
	k.Path, k.Query = escapedPath(r.URL), s.Query.kept(r.URL.RawQuery)
	if r.Sent != r.URL {
		sent := poller.ShieldKey{Path: escapedPath(r.Sent), Query: s.Query.kept(r.Sent.RawQuery)}
		if sent.Path != k.Path || sent.Query != k.Query {
			k.Sent = sent.Target()
		}
	}
	return k, len(k.Path)+len(k.Query)+len(k.Sent) <= maxKey
}

// escapedPath returns a path as in a request line, without spaces.
func escapedPath(u *url.URL) string {
	if path := u.EscapedPath(); strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + u.EscapedPath()
}

// Query selects the part of a request's query that belongs to the feed's URL.
type Query struct {
	// Whether the query is ignored.
	Ignore bool `json:"ignore,omitempty"`

	// The names of the parameters to keep.
	Keep []string `json:"keep,omitempty"`
}

func (q *Query) check() error {
	switch {
	case q == nil:
		return nil
	case q.Ignore && len(q.Keep) > 0:
		return fmt.Errorf("query: ignore and keep exclude each other")
	case !q.Ignore && len(q.Keep) == 0:
		return fmt.Errorf("query: expected ignore, or keep and names of parameters")
	}
	return nil
}

// kept returns the part of a query that belongs to the key: parameters as they were sent, in
// their order.
func (q *Query) kept(raw string) string {
	if raw == "" || q != nil && q.Ignore {
		return ""
	}
	if q != nil {
		var kept []string
		for pair := range strings.SplitSeq(raw, "&") {
			name, _, _ := strings.Cut(pair, "=")
			if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(q.Keep, plain) {
				kept = append(kept, pair)
			}
		}
		raw = strings.Join(kept, "&")
	}
	return strings.ReplaceAll(raw, " ", "%20") // HTTP/2 allows spaces
}
