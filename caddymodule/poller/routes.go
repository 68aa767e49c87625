// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"cmp"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/rewrite"

	"github.com/feedpollard/pollard/caddymodule/config"
)

// Site is where a handler stands among the routes of a server: for each way to it, the host matchers
// of the routes on that way.
type Site [][]caddyhttp.MatcherSets

// SiteOf returns the site of a handler.
func SiteOf(routes caddyhttp.RouteList, handler caddyhttp.MiddlewareHandler) (ways Site) {
	for i := range routes {
		for _, h := range routes[i].Handlers {
			inner := Site{nil}
			if route, ok := h.(*caddyhttp.Subroute); ok {
				inner = SiteOf(route.Routes, handler)
			} else if h != handler {
				continue
			}
			for _, way := range inner {
				if hosts := hostsOf(routes[i].MatcherSets); hosts != nil {
					way = append(way, hosts)
				}
				ways = append(ways, way)
			}
		}
	}
	return ways
}

// hostsOf returns the host matchers of each set, or nil if a set has none.
func hostsOf(sets caddyhttp.MatcherSets) (hosts caddyhttp.MatcherSets) {
	for _, set := range sets {
		var some caddyhttp.MatcherSet
		for _, matcher := range set {
			if _, ok := matcher.(*caddyhttp.MatchHost); ok {
				some = append(some, matcher)
			}
		}
		if some == nil {
			return nil
		}
		hosts = append(hosts, some)
	}
	return hosts
}

// walk follows a request through routes as Caddy does, to the handlers that may get it, and runs none but
// rewrites. Host and path of the request are known, all else is not.
type walk struct {
	r         *http.Request
	rewritten bool // so that its path is not known any more
	found     []caddyhttp.MiddlewareHandler
}

// walkFor returns a walk for the requests that have a key.
func walkFor(k ShieldKey) *walk {
	target := cmp.Or(k.Sent, k.Target())
	u, err := url.ParseRequestURI(target)
	if err != nil { // no server lets such a request in
		u = &url.URL{Path: target}
	}
	r := &http.Request{Method: http.MethodGet, Host: k.Host, URL: u, RequestURI: target, Header: make(http.Header)}
	return &walk{r: caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)}
}

// routes adds the handlers that get the request if it comes to these routes, as it surely does or may. It
// reports whether the request may come to the routes after them.
func (w *walk) routes(routes caddyhttp.RouteList, surely bool) (further bool) {
	matched := make(map[string]bool) // groups: of each, the first route that matches is the only one
	for i := range routes {
		route := &routes[i]
		if matched[route.Group] {
			continue
		}
		matches, may := w.match(route.MatcherSets)
		if !may {
			continue
		}
		matched[route.Group] = matches && route.Group != ""
		matches = matches && surely
		for _, h := range route.Handlers {
			switch h := h.(type) {
			case *caddyhttp.Subroute:
				if !w.routes(h.Routes, matches) {
					return false
				}
			case *rewrite.Rewrite:
				w.rewrite(h, matches)
			default:
				w.found = append(w.found, h)
			}
		}
		if matches && route.Terminal {
			return false
		}
	}
	return true
}

// match reports whether matchers match the request, and whether they may: what they ask of it beside host and
// path is not known.
func (w *walk) match(sets caddyhttp.MatcherSets) (matches, may bool) {
	for _, set := range sets {
		all, none := true, false
		for _, matcher := range set {
			one, perhaps := false, true
			switch m := matcher.(type) {
			case *caddyhttp.MatchNot:
				inner, innerMay := w.match(m.MatcherSets)
				one, perhaps = !innerMay, !inner
			case *caddyhttp.MatchHost:
				one = m.Match(w.r)
				perhaps = one
			case *caddyhttp.MatchPath, *caddyhttp.MatchPathRE:
				if !w.rewritten {
					one, _ = m.(caddyhttp.RequestMatcherWithError).MatchWithError(w.r) // these never fail
					perhaps = one
				}
			}
			all, none = all && one, none || !perhaps
		}
		matches, may = matches || all, may || !none
	}
	return matches || len(sets) == 0, may || len(sets) == 0
}

// rewrite rewrites the request. If that depends on more than its path, the path is not known any more.
func (w *walk) rewrite(h *rewrite.Rewrite, surely bool) {
	if !surely || len(h.URISubstring) > 0 || len(h.PathRegexp) > 0 || config.HasPlaceholder(h.URI+h.StripPathPrefix+h.StripPathSuffix) {
		w.rewritten = true
		return
	}
	h.Rewrite(w.r, w.r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer))
}
