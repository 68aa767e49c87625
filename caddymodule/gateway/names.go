// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// Find implements [poller.Names].
func (g *Gateway) Find(name string) string {
	if strings.HasPrefix(name, "/") {
		path, err := url.PathUnescape(name)
		if err != nil {
			return ""
		}
		if key := g.paths[path]; key != "" {
			return key
		}
		below, _ := strings.CutPrefix(path, g.base())
		return g.paths[below]
	}
	u, err := feedurl.ParseWritten(name)
	if err != nil || !g.isAt(u.Name()) {
		return ""
	}
	requested, found := u.RequestURL(), false
	if requested.Path, found = strings.CutPrefix(requested.Path, g.base()); !found {
		return ""
	}
	requested.RawPath = strings.TrimPrefix(requested.RawPath, g.base())
	key, err := feedurl.Canonical(g.feedAt(requested))
	if err != nil {
		return ""
	}
	return key
}

// feedAt returns the URL of the feed that a URL of this gateway is for, or "".
func (g *Gateway) feedAt(requested *url.URL) string {
	if key := g.paths[requested.Path]; key != "" {
		return key
	}
	if by, ok := parseByURL(requested, nil); ok {
		return by.target
	}
	return ""
}

// Address implements [poller.Names]. If the site is for any host, it is the path alone.
func (g *Gateway) Address(key string) string {
	path := g.chosen[key]
	if path == "" {
		return ""
	}
	path = g.base() + path
	hosts := g.hosts()
	if len(hosts) == 0 {
		return path
	}
	scheme := "http"
	if len(g.server.TLSConnPolicies) > 0 {
		scheme = "https"
	}
	host := hosts[0]
	if listen := g.server.Listen; len(listen) > 0 {
		if _, port, err := net.SplitHostPort(listen[0]); err == nil && port != map[string]string{"http": "80", "https": "443"}[scheme] {
			host = net.JoinHostPort(host, port)
		}
	}
	return scheme + "://" + host + path
}

// NamesAt implements [poller.Names].
func (g *Gateway) NamesAt(origin string) bool {
	return g.origins[origin] || g.access.list.hasAt(origin)
}

// Listed implements [poller.Names].
func (g *Gateway) Listed() []string { return g.access.listed() }

// isAt reports whether the gateway's site has a host: by its name or, if it is for any host, as a
// private address, which may be this machine's.
func (g *Gateway) isAt(host string) bool {
	if hosts := g.hosts(); len(hosts) > 0 {
		return slices.Contains(hosts, host)
	}
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && door.Private(address)
}

// base returns the path below which the gateway's addresses are, such as /feeds: what handle_path and
// uri strip_prefix remove before it.
func (g *Gateway) base() string {
	if g.server == nil {
		return ""
	}
	base, _ := baseOf(g.server.Routes, g)
	return base
}

func baseOf(routes caddyhttp.RouteList, handler caddyhttp.MiddlewareHandler) (base string, found bool) {
	for i := range routes {
		inner := base
		for _, h := range routes[i].Handlers {
			switch h := h.(type) {
			case *rewrite.Rewrite:
				inner += h.StripPathPrefix
			case *caddyhttp.Subroute:
				if below, found := baseOf(h.Routes, handler); found {
					return inner + below, true
				}
			default:
				if h == handler {
					return inner, true
				}
			}
		}
		if len(routes[i].MatcherSets) == 0 {
			base = inner
		}
	}
	return "", false
}

// hosts returns the names of the gateway's site, without wildcards. There are none if the site is
// for any host.
func (g *Gateway) hosts() (names []string) {
	if g.server == nil {
		return nil
	}
	for _, way := range poller.SiteOf(g.server.Routes, g) {
		for _, set := range slices.Concat(way...) {
			for _, matcher := range set {
				names = append(names, *matcher.(*caddyhttp.MatchHost)...)
			}
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.ContainsAny(name, "*{") })
}
