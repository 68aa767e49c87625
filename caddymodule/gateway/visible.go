// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"
	"strconv"
	"strings"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// mark returns how a request was admitted, as feeds remember it: by a token, or by the words of
// the line clients. Gateways with the same words have the same mark. It is 0 if the gateway
// admits any client: these have nothing in common.
func (a *access) mark(by urlRequest) cache.Mark {
	switch {
	case by.hasToken:
		return a.tokens[a.tokenName(by.token)].mark
	case a.clients.any:
		return 0
	}
	return a.clients.mark
}

// markOf returns the mark of ranges, whatever the order in which they are written.
func (c *clientRanges) markOf() cache.Mark {
	words := make([]string, 0, len(c.ranges)+1)
	for _, p := range c.ranges {
		words = append(words, p.Masked().String())
	}
	if c.private {
		words = append(words, "private")
	}
	slices.Sort(words)
	return cache.MarkOf("clients " + strings.Join(slices.Compact(words), " "))
}

// viewer returns what a client with a mark is shown. site is the address of the gateway.
func (g *Gateway) viewer(mark cache.Mark, site string) pages.Viewer {
	return pages.Viewer{
		Name:       strconv.FormatUint(uint64(mark), 16),
		Shown:      func(key, from string, marks []cache.Mark) bool { return g.visible(mark, key, from, marks) },
		MayRequest: func(u feedurl.URL) bool { return g.access.checkURL(u) == nil },
		Address: func(key string) string {
			if path := g.chosen[key]; path != "" {
				return site + path
			}
			return ""
		},
	}
}

// visible reports whether a client with a mark is shown a feed whose version came from a URL, and
// that readers with some marks have asked for: if the gateway would serve it to that client now, at a path or by URL, and either
// the configuration names the feed, or a client with the same mark has asked for it. All lists,
// counts and sums of a gateway consist of such feeds.
func (g *Gateway) visible(mark cache.Mark, key, from string, marks []cache.Mark) bool {
	switch {
	case mark == 0 || !strings.HasPrefix(key, "http"): // any client, or the feed of a shield
		return false
	case g.chosen[key] != "":
		return true
	case !slices.Contains(marks, mark) && !g.access.list.has(key):
		return false
	}
	u, err := feedurl.Parse(key)
	return err == nil && g.access.checkURL(u) == nil && (from == "" || g.access.checkFrom(from) == nil)
}
