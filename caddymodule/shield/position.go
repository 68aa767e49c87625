// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp/headers"
	maphandler "github.com/caddyserver/caddy/v2/modules/caddyhttp/map"
)

// position is where a shield stands in the routes of a server.
type position struct {
	server *caddyhttp.Server
	known  bool
	// hosts are the names that the configuration gives to the sites on the way.
	hosts []*caddyhttp.MatchHost
	// number tells the shield from others of the same names: two of them may have
	// different origins for one URL.
	number int
	// before are the handlers on the way that add to requests what origins may need.
	before []preparation
}

// preparation is a handler that prepares requests, where its route matches.
type preparation struct {
	matchers caddyhttp.MatcherSets
	handler  caddyhttp.MiddlewareHandler
}

// positionOf finds a shield in a server's routes. It is not found within handlers
// that nobody can look into, nor in the routes for errors.
func positionOf(s *Shield, server *caddyhttp.Server) *position {
	if server == nil {
		return new(position)
	}
	f := finder{shield: s, numbers: make(map[string]int)}
	found := f.routes(server.Routes, position{})
	if !found {
		// In a route that others invoke by name, any site of the server may lead there.
		sites := f.all
		f.numbers = map[string]int{"": invoked}
		for _, name := range slices.Sorted(maps.Keys(server.NamedRoutes)) {
			if found = f.routes(caddyhttp.RouteList{*server.NamedRoutes[name]}, position{}); found {
				f.found.hosts = sites
				break
			}
		}
	}
	f.found.server, f.found.known = server, found
	return &f.found
}

// invoked is the number of the first shield in a named route.
const invoked = 1000

// finder walks through routes.
type finder struct {
	shield  *Shield
	numbers map[string]int         // of shields met so far, by the names on their way
	all     []*caddyhttp.MatchHost // met so far
	found   position
}

// routes looks for the shield in routes that are reached on a way.
func (f *finder) routes(list caddyhttp.RouteList, way position) bool {
	way.hosts, way.before = slices.Clip(way.hosts), slices.Clip(way.before)
	for i := range list {
		route, in := &list[i], way
		for _, set := range route.MatcherSets {
			for _, m := range set {
				if host, ok := m.(*caddyhttp.MatchHost); ok {
					in.hosts = append(in.hosts, host)
					f.all = append(f.all, host)
				}
			}
		}
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case *Shield:
				names := namesOf(in.hosts)
				if h == f.shield {
					in.number = f.numbers[names]
					f.found = in
					return true
				}
				f.numbers[names]++
			case *caddyhttp.Subroute:
				if f.routes(h.Routes, in) {
					return true
				}
			case *maphandler.Handler, *headers.Handler:
				p := preparation{route.MatcherSets, handler}
				in.before, way.before = append(in.before, p), append(way.before, p)
			}
		}
	}
	return false
}

func namesOf(hosts []*caddyhttp.MatchHost) (names string) {
	for _, host := range hosts {
		names += fmt.Sprint(*host)
	}
	return names
}

// named reports whether the configuration gives a request's host to a site on the
// way: it is not just what the request says.
func (p *position) named(r *http.Request) bool {
	for _, host := range p.hosts {
		if ok, err := host.MatchWithError(r); ok && err == nil {
			return true
		}
	}
	return false
}

// prepare does to a request what handlers on the way do to requests, as far as they
// would do it to this one. Where it is no poll, its header is as they have left it.
func (p *position) prepare(w http.ResponseWriter, r *http.Request, poll bool) error {
	for _, before := range p.before {
		if ok, err := before.matchers.AnyMatchWithError(r); err != nil || !ok {
			continue
		}
		switch h := before.handler.(type) {
		case *maphandler.Handler:
			nothing := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return nil })
			if err := h.ServeHTTP(w, r, nothing); err != nil {
				return err
			}
		case *headers.Handler:
			if poll && h.Request != nil {
				h.Request.ApplyToRequest(r)
			}
		}
	}
	return nil
}
