// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
)

// Site is the site block that a directive belongs to.
type Site struct {
	Addresses []string // as written; empty in a named route, which any site may invoke

	segments [][]token // its directives
}

// token is a word of a Caddyfile.
type token struct {
	text string
	line int
}

// SiteOf returns the site of a directive. Caddy exposes it only to its own directives, so
// SiteOf reads private fields of the helper. It fails if their names have changed.
func SiteOf(h httpcaddyfile.Helper) (s Site, err error) {
	if h.IsNamedRoute() {
		return s, nil
	}
	block := reflect.ValueOf(h).FieldByName("parentBlock")
	if block.Kind() != reflect.Struct {
		return s, errNoSite
	}
	keys, segments := block.FieldByName("Keys"), block.FieldByName("Segments")
	if keys.Kind() != reflect.Slice || segments.Kind() != reflect.Slice {
		return s, errNoSite
	}
	for _, key := range tokensOf(keys) {
		if text := strings.TrimSuffix(key.text, ","); text != "" {
			s.Addresses = append(s.Addresses, text)
		}
	}
	for i := range segments.Len() {
		s.segments = append(s.segments, tokensOf(segments.Index(i)))
	}
	return s, nil
}

var errNoSite = errors.New("this version of Caddy does not say to which site a directive belongs: use the JSON form")

// tokensOf reads a slice of [caddyfile.Token].
func tokensOf(v reflect.Value) (tokens []token) {
	for i := range v.Len() {
		t := v.Index(i)
		tokens = append(tokens, token{t.FieldByName("Text").String(), int(t.FieldByName("Line").Int())})
	}
	return tokens
}

// Before returns the first directive that would answer every request before the
// directive name at line at can run, or "" if there is none. It looks at the top level and
// into handle and route. Caddy sorts all directives except those in route, so the one
// returned may be further down.
func (s Site) Before(h httpcaddyfile.Helper, name string, at int) (directive string, line int) {
	if h.Option("order") != nil {
		return "", 0 // the operator has decided what runs first
	}
	return before(s.segments, token{name, at}, true)
}

// before is [Site.Before] for the directives of one block. Caddy sorts them if sorted is true.
func before(segments [][]token, wanted token, sorted bool) (directive string, line int) {
	own := slices.IndexFunc(segments, func(tokens []token) bool { return slices.Contains(tokens, wanted) })
	if own < 0 {
		return "", 0
	}
	for i, tokens := range segments {
		first := tokens[0]
		comes := i < own // before the directive, or before the block that it is in
		if sorted {
			comes = segments[own][0] == wanted && slices.Contains(earlier, first.text)
		}
		if comes && answersAll(tokens) {
			return first.text, first.line
		}
	}
	switch block := segments[own]; block[0].text {
	case "handle", "handle_path", "route":
		if open := slices.IndexFunc(block, func(t token) bool { return t.text == "{" }); open >= 0 {
			return before(directives(block[open+1:]), wanted, block[0].text != "route")
		}
	}
	return "", 0
}

var (
	// earlier are directives that Caddy orders before reverse_proxy and that can answer
	// every request.
	earlier = []string{"handle", "route", "respond", "abort", "error"}
	// answering are directives that answer every request that reaches them.
	answering = []string{"respond", "abort", "error", "reverse_proxy", "php_fastcgi", "file_server"}
)

// answersAll reports whether a directive answers every request that reaches it.
func answersAll(tokens []token) bool {
	directive, rest := tokens[0], tokens[1:]
	if hasMatcher(tokens) {
		return false
	}
	if slices.Contains(answering, directive.text) {
		return true
	}
	if directive.text != "handle" && directive.text != "route" {
		return false
	}
	open := slices.IndexFunc(rest, func(t token) bool { return t.text == "{" })
	if open < 0 {
		return false
	}
	return slices.ContainsFunc(directives(rest[open+1:]), answersAll)
}

// hasMatcher reports whether a directive has a matcher.
func hasMatcher(tokens []token) bool {
	if len(tokens) < 2 {
		return false
	}
	if second := tokens[1]; second.line == tokens[0].line && strings.IndexAny(second.text, "/@") == 0 {
		return true
	}
	// Caddy deletes the matcher of a directive that it has parsed in place: the tokens
	// after it move up, and the last one is there twice.
	last := len(tokens) - 1
	return last > 1 && tokens[last] == tokens[last-1]
}

// directives splits the tokens of a block, up to its closing brace, into its directives.
func directives(tokens []token) (all [][]token) {
	depth, begin := 0, -1
	for i, t := range tokens {
		if depth == 0 && (begin < 0 || t.line != tokens[i-1].line) || depth < 0 {
			if begin >= 0 {
				all = append(all, tokens[begin:i])
			}
			begin = i
		}
		switch t.text {
		case "{":
			depth++
		case "}":
			if depth--; depth < 0 {
				if begin >= 0 && begin < i {
					all = append(all, tokens[begin:i])
				}
				return all
			}
		}
	}
	if begin >= 0 {
		all = append(all, tokens[begin:])
	}
	return all
}
