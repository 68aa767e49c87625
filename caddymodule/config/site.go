// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// Site is the site block of a Caddyfile around a directive.
type Site struct {
	Addresses []string
	Levels    []Level  // from the site block inwards
	Open      string   // the file, if it ends before all blocks are closed, which Caddy accepts of the last one
	Unbound   []string // the addresses of all sites of the file that have no line bind
}

// Level is one of the blocks around a directive.
type Level struct {
	Own    caddyfile.Segment   // the directive, or the one in whose block it is
	Before []caddyfile.Segment // what may run before Own: the others, in route those above it
}

// SiteOf finds the site block around a directive, which Caddy does not show to it, by reading the
// Caddyfile again. Without a file, the site has no levels.
func SiteOf(h httpcaddyfile.Helper) (site Site) {
	own := h.Token()
	holds := func(s caddyfile.Segment) bool {
		return slices.ContainsFunc(s, func(t caddyfile.Token) bool { return t.Text == own.Text && t.Line == own.Line && t.File == own.File })
	}
	for _, file := range h.Caddyfiles() {
		text, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		blocks, _ := caddyfile.Parse(file, text)
		var unbound []string
		for _, block := range blocks {
			if !slices.ContainsFunc(block.Segments, func(s caddyfile.Segment) bool { return s.Directive() == "bind" }) {
				unbound = append(unbound, block.GetKeysText()...)
			}
		}
		for _, block := range blocks {
			if slices.ContainsFunc(block.Segments, holds) {
				site = Site{Addresses: block.GetKeysText(), Levels: levels(block.Segments, holds, false), Unbound: unbound}
				if !closed(file, text) {
					site.Open = file
				}
				return site
			}
		}
	}
	return site
}

// closed reports whether a Caddyfile closes each block that it opens.
func closed(file string, text []byte) bool {
	tokens, err := caddyfile.Tokenize(text, file)
	open := 0
	for _, t := range tokens {
		switch {
		case t.Quoted():
		case t.Text == "{":
			open++
		case t.Text == "}":
			open--
		}
	}
	return err != nil || open <= 0
}

// levels returns the levels from these directives inwards. Caddy sorts directives, but not those of route.
func levels(segments []caddyfile.Segment, holds func(caddyfile.Segment) bool, route bool) []Level {
	i := slices.IndexFunc(segments, holds)
	if i < 0 {
		return nil
	}
	level := Level{segments[i], segments[:i:i]}
	if !route {
		level.Before = append(level.Before, segments[i+1:]...)
	}
	if holds(level.Own[:1]) {
		return []Level{level}
	}
	var inner []caddyfile.Segment
	d := caddyfile.NewDispenser(level.Own)
	d.Next()
	d.RemainingArgs() // a matcher
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		inner = append(inner, d.NextSegment())
	}
	return append([]Level{level}, levels(inner, holds, level.Own.Directive() == "route")...)
}

// Matcher returns the matcher of a directive as it is written, a path or a name with @, or "" if the
// directive is for all requests.
func Matcher(s caddyfile.Segment) string {
	if len(s) > 1 && (strings.HasPrefix(s[1].Text, "/") || strings.HasPrefix(s[1].Text, "@")) {
		return s[1].Text
	}
	return ""
}

// WarnOfSite warns of a directive that gets no request, as another one takes them all, and of slips in the site block
// that Caddy accepts. It does not judge an order of directives that the operator has chosen.
func WarnOfSite(h httpcaddyfile.Helper, site Site) {
	if site.Open != "" {
		Warn(h.Dispenser, "a } is missing at the end of %s: write one for each {", site.Open)
	}
	for _, address := range site.Addresses {
		if _, err := strconv.ParseUint(address, 10, 16); err == nil {
			Warn(h.Dispenser, "the site address %s is the name of a host: write :%[1]s for that port", address)
		}
	}
	for _, level := range site.Levels {
		for _, other := range level.Before {
			takes := other.Directive() == "respond" || other.Directive() == "handle" && !strings.HasPrefix(level.Own.Directive(), "handle")
			if takes && Matcher(other) == "" && h.Option("order") == nil {
				Warn(h.Dispenser, "%s gets no request: the %s at line %d takes them all: write %[1]s into it, or into a handle of its own", h.Val(), other.Directive(), other[0].Line)
			}
		}
	}
}
