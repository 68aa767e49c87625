// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
)

// Shield is a handler in front of its own origin.
type Shield interface {
	// OriginOf returns the origin at which the feed of a key is polled.
	OriginOf(k ShieldKey) cache.Origin
	// Rules returns the operator's rules for its feeds.
	Rules() policy.Rules
	// ReplayedLimits returns the limits of `defend` for a request of a log, which no server has seen.
	ReplayedLimits(r *http.Request) readers.Limits
	// Server returns the server among whose routes it stands, or nil.
	Server() *caddyhttp.Server
	caddyhttp.MiddlewareHandler
}

// ShieldRules returns the default rules for shielded feeds. The comment of feed_shield documents them.
func ShieldRules() policy.Rules {
	r := policy.DefaultRules()
	r.MinInterval, r.DefaultInterval, r.OwnSite = time.Minute, time.Minute, true
	return r
}

// AddShield registers a shield by its identity, which is part of the keys of its feeds. Shields
// with one identity have the same origin block, and share the feeds that they both serve.
func (a *App) AddShield(identity string, s Shield) {
	a.shields[identity] = append(a.shields[identity], s)
}

// serving returns the shields that serve the feed of a key: those that requests with its host and path may
// come to, at its port if one of them listens there. If none is known, as after a rewrite by a
// handler of another module, the path does not count; and if routes do not lead to any of them (invoke), all serve it.
func (a *App) serving(k ShieldKey) []Shield {
	shields := a.shields[k.Shield]
	for _, pathKnown := range []bool{true, false} {
		if found := reached(shields, k, pathKnown); len(found) > 0 {
			return found
		}
	}
	return slices.DeleteFunc(slices.Clone(shields), func(s Shield) bool {
		return s.Server() != nil && len(SiteOf(s.Server().Routes, s)) > 0
	})
}

func reached(shields []Shield, k ShieldKey, pathKnown bool) (found []Shield) {
	walks := make(map[*caddyhttp.Server]*walk)
	atPort := false
	for _, s := range shields {
		server := s.Server()
		if server == nil {
			continue
		}
		w := walks[server]
		if w == nil {
			w = walkFor(k)
			w.rewritten = !pathKnown
			w.routes(server.Routes, true)
			walks[server] = w
		}
		if slices.Contains(w.found, caddyhttp.MiddlewareHandler(s)) {
			found = append(found, s)
			atPort = atPort || listensAt(server, k)
		}
	}
	if atPort {
		found = slices.DeleteFunc(found, func(s Shield) bool { return !listensAt(s.Server(), k) })
	}
	return found
}

// listensAt reports whether a server listens at the port of a key. Behind a proxy it may not.
func listensAt(server *caddyhttp.Server, k ShieldKey) bool {
	u := url.URL{Host: k.Host}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[k.Scheme]), 10, 16)
	return err == nil && slices.ContainsFunc(server.Listen, func(address string) bool {
		at, err := caddy.ParseNetworkAddress(address)
		return err == nil && uint64(at.StartPort) <= port && port <= uint64(at.EndPort)
	})
}

// Serves reports whether a shield is one of those that serve the feed of a key.
func (a *App) Serves(s Shield, k ShieldKey) bool {
	return slices.Contains(a.serving(k), s)
}

func (a *App) shieldsOf(key string) ([]Shield, ShieldKey) {
	k, ok := ParseShieldKey(key)
	if !ok {
		return nil, k
	}
	return a.serving(k), k
}

// originOf returns the origin at which a shielded feed is polled, or nil if its shield is not
// configured.
func (a *App) originOf(key string) cache.Origin {
	shields, k := a.shieldsOf(key)
	if len(shields) == 0 {
		return nil
	}
	return shields[0].OriginOf(k)
}

// rulesOf returns the rules of a feed: of a shielded one, the strictest of the shields that serve it.
func (a *App) rulesOf(key feedstate.Key) policy.Rules {
	shields, _ := a.shieldsOf(key.String())
	if len(shields) == 0 {
		return a.RulesFor(key.URL())
	}
	rules := shields[0].Rules()
	for _, s := range shields[1:] {
		rules = rules.Stricter(s.Rules())
	}
	return rules
}

// errNoShield reports that the shield of a feed is not in force yet.
var errNoShield = errors.New("the shield is not in force yet")

// Feed returns the feed of a shield's key, ready to be polled. It fails while a reload has not put
// the shield in force.
func (e *Engine) Feed(ctx context.Context, key string) (*cache.Feed, error) {
	c, err := e.Opened(ctx)
	if err != nil {
		return nil, err
	}
	feed, err := c.Feed(ctx, key)
	if err == nil && feed.Due() && e.app.Load().originOf(key) == nil {
		return nil, errNoShield
	}
	return feed, err
}

// ShieldKey identifies a stored response of a shield. A poll is built from the key and the
// configuration, and from nothing else.
type ShieldKey struct {
	// Shield is the identity of the shield, a word: a hash of its origin block.
	Shield string
	// Scheme and Host are those of the request. Host is normalized, and has a port unless that is
	// the default of the scheme.
	Scheme, Host string
	// Forwarded is the X-Forwarded-Host of a trusted proxy, normalized as Host, if it is another
	// name.
	Forwarded string
	// Path and Query are the escaped path and the kept query as they reach the shield.
	Path, Query string
	// Sent is the path and the kept query as the reader sent them, if a handler before the
	// shield has changed them.
	Sent string
}

// The text of a key is
//
//	shield:<identity> <scheme>://<host><path>[?<query>][ forwarded:<host>][ sent:<path>[?<query>]]
//
// Identities and URLs contain no space. The URL of a feed that is not of a shield never begins
// with "shield:".
const (
	// ShieldCommon is the prefix of all keys of shields.
	ShieldCommon = "shield:"

	forwardedPrefix = " forwarded:"
	sentPrefix      = " sent:"
)

// ShieldPrefix returns the prefix of all keys of a shield.
func ShieldPrefix(shield string) string { return ShieldCommon + shield + " " }

// String returns the text of the key. [ParseShieldKey] reads it.
func (k ShieldKey) String() string {
	text := ShieldCommon + k.Shield + " " + k.Scheme + "://" + k.Host + k.Target()
	if k.Forwarded != "" {
		text += forwardedPrefix + k.Forwarded
	}
	if k.Sent != "" {
		text += sentPrefix + k.Sent
	}
	return text
}

// Target returns the path and query as they reach the shield.
func (k ShieldKey) Target() string {
	if k.Query == "" {
		return k.Path
	}
	return k.Path + "?" + k.Query
}

// URL returns the URL that readers request.
func (k ShieldKey) URL() string {
	return k.Scheme + "://" + cmp.Or(k.Forwarded, k.Host) + cmp.Or(k.Sent, k.Target())
}

// ParseShieldKey parses the text of a key.
func ParseShieldKey(text string) (k ShieldKey, ok bool) {
	rest, ok := strings.CutPrefix(text, ShieldCommon)
	if !ok {
		return ShieldKey{}, false
	}
	k.Shield, rest, _ = strings.Cut(rest, " ")
	rest, k.Sent, _ = strings.Cut(rest, sentPrefix)
	rest, k.Forwarded, _ = strings.Cut(rest, forwardedPrefix)
	k.Scheme, rest, ok = strings.Cut(rest, "://")
	slash := strings.IndexByte(rest, '/')
	if !ok || slash < 0 || k.Shield == "" || strings.Contains(k.Scheme+rest+k.Forwarded+k.Sent, " ") {
		return ShieldKey{}, false
	}
	k.Host = rest[:slash]
	k.Path, k.Query, _ = strings.Cut(rest[slash:], "?")
	return k, k.String() == text
}

// IsShielded reports whether a key is that of a shield's feed.
func IsShielded(key string) bool { return strings.HasPrefix(key, ShieldCommon) }

// ReadersURL returns the URL that readers request for a key of the engine. A key that is
// not of a shield is that URL.
func ReadersURL(key string) string {
	if k, ok := ParseShieldKey(key); ok {
		return k.URL()
	}
	return key
}
