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

// group returns the group of the readers of a request: those with its token, or those that the words of
// the line clients admit. Gateways with the same words have the same group. It is 0 if the gateway
// admits any client: those have nothing in common.
func (a *access) group(by urlRequest) cache.Group {
	switch {
	case by.hasToken:
		return a.tokens[a.tokenName(by.token)].group
	case a.clients.any:
		return 0
	}
	return a.clients.group
}

// groupOf returns the group of ranges, whatever the order in which they are written.
func (c *clientRanges) groupOf() cache.Group {
	words := make([]string, 0, len(c.ranges)+1)
	for _, p := range c.ranges {
		words = append(words, p.Masked().String())
	}
	if c.private {
		words = append(words, "private")
	}
	slices.Sort(words)
	return cache.GroupOf("clients " + strings.Join(slices.Compact(words), " "))
}

// viewer returns what a client of a group is shown. site is the address of the gateway.
func (g *Gateway) viewer(group cache.Group, site string) pages.Viewer {
	return pages.Viewer{
		Name:       strconv.FormatUint(uint64(group), 16),
		Shown:      func(key, from string, groups []cache.Group) bool { return g.visible(group, key, from, groups) },
		MayRequest: func(u feedurl.URL) bool { return g.access.checkURL(u) == nil },
		Address: func(key string) string {
			if path := g.chosen[key]; path != "" {
				return site + path
			}
			return ""
		},
	}
}

// visible reports whether a client of a group is shown a feed. from is the URL that its version came
// from, and groups have asked for it. The gateway must serve the feed to that client now, at a path
// or by URL. Either the configuration names the feed, or the client's group has asked for it. All
// lists, counts and sums of a gateway consist of such feeds.
func (g *Gateway) visible(group cache.Group, key, from string, groups []cache.Group) bool {
	switch {
	case group == 0 || !strings.HasPrefix(key, "http"): // any client, or the feed of a shield
		return false
	case g.chosen[key] != "":
		return true
	case !slices.Contains(groups, group) && !g.access.list.has(key):
		return false
	}
	u, err := feedurl.Parse(key)
	return err == nil && g.access.checkURL(u) == nil && (from == "" || g.access.checkFrom(from) == nil)
}
