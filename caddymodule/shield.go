// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

func init() {
	caddy.RegisterModule(Shield{})
}

// Shield stands before a site's feeds and answers their readers, so that the site
// is asked once in a while and not by each of them. What follows it in the route
// (`reverse_proxy`, `php_fastcgi`, `file_server`, `respond`) is the origin: it sees
// Pollard's own clean requests, at most one per interval and feed, conditional
// where it gives validators.
//
// What is not for everybody passes through untouched: other methods than GET and
// HEAD, requests with credentials, answers that are `private`, `no-store` or
// redirects, and whatever is no feed. A shield that cannot help stands aside.
type Shield struct {
	// How often the site is asked. The defaults are those of a site of one's own:
	// `min_interval` and `default_interval` are `1m`, there is no floor for feeds
	// without validators, the rhythm of the entries does not matter, and after
	// failures the site is asked again within ten minutes.
	Policy

	// The host under which the site's feeds are kept, and that the site is asked
	// for. It is needed only where the site has no host in its address (`:8080`)
	// and the origin cares for the host that it is asked for. Default: the host of
	// the site's address, or the address at which the server listens.
	Host string `json:"host,omitempty"`

	// Whether to be a plain shared cache by RFC 9111 instead: HTTP freshness alone
	// decides, for any content type, without floor, feed hints and back-off, and
	// stored in memory only. Default: `false`.
	RFC9111 bool `json:"rfc9111,omitempty"`

	// What is refused of readers. Default: nothing is.
	Defend *Defend `json:"defend,omitempty"`

	log    *zap.Logger
	engine *engine
	site   *site
}

// CaddyModule returns the Caddy module information.
func (Shield) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.feed_shield",
		New: func() caddy.Module { return new(Shield) },
	}
}

// shieldRules are the rules for a site of one's own: nobody's patience needs to be
// spared but the site's, and its owner wants new entries seen.
func shieldRules() policy.Rules {
	r := policy.DefaultRules()
	r.MinInterval, r.DefaultInterval, r.UnvalidatedInterval = time.Minute, time.Minute, time.Minute
	r.MaxBackOff, r.NoRhythm = 10*time.Minute, true
	return r
}

// Provision resolves the rules and gets the engine.
func (s *Shield) Provision(ctx caddy.Context) error {
	s.log = ctx.Logger()
	app, err := ctx.App("pollard")
	if err != nil {
		return fmt.Errorf("getting the pollard app: %w", err)
	}
	s.engine = app.(*App).engine
	rules, err := s.Policy.over(shieldRules())
	if err != nil {
		return err
	}
	if err := s.check(); err != nil {
		return err
	}
	if s.Defend != nil {
		if err := s.Defend.provision(ctx); err != nil {
			return fmt.Errorf("defend: %w", err)
		}
	}
	s.site = newSite(rules)
	origin := app.(*App).settings.origin
	s.site.apply(origin.Version, origin.Contact)
	return nil
}

// check reports what cannot be meant.
func (s *Shield) check() error {
	if err := s.Policy.check(); err != nil {
		return err
	}
	if s.RFC9111 && s.Policy != (Policy{}) {
		return errors.New("rfc9111: HTTP freshness alone decides, so there can be no policy lines beside it")
	}
	if s.Host != "" {
		if u, err := cache.Canonical("http://" + s.Host + "/"); err != nil || u != "http://"+strings.ToLower(s.Host)+"/" {
			return fmt.Errorf("host: %q is no host: expected one such as blog.example.com", s.Host)
		}
	}
	return nil
}

// Cleanup ends the polls that go on.
func (s *Shield) Cleanup() error {
	if s.site != nil {
		s.site.client.Close()
	}
	return nil
}

// ServeHTTP answers a request for a feed, or lets it pass.
func (s *Shield) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	if s.RFC9111 {
		return s.serveShared(w, r, next)
	}
	if personal(r) {
		return next.ServeHTTP(w, r)
	}
	c, err := s.engine.opened(r.Context())
	if err != nil {
		return next.ServeHTTP(w, r) // better a site without a shield than none
	}
	key := shieldPrefix + s.hostOf(r) + targetOf(r)
	feed, waited, err := s.feed(c, key, r, next)
	if err != nil {
		return next.ServeHTTP(w, r)
	}
	return s.answer(w, r, next, feed, waited, key)
}

// personal reports whether a request is its reader's own affair.
func personal(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead ||
		r.Header["Authorization"] != nil || r.Header["Upgrade"] != nil || r.ContentLength != 0
}

// feed is the feed that a request asks for: the plain one, or a variant where the
// site tells its readers apart.
func (s *Shield) feed(c *cache.Cache, key string, r *http.Request, next caddyhttp.Handler) (*cache.Feed, cache.Waited, error) {
	none := cache.Waited{}
	feed, err := c.FeedFrom(key, s.site)
	if err != nil {
		return nil, none, err
	}
	if s.site.route.Load() == nil || feed.Due() {
		s.site.route.Store(routeOf(r, next))
	}
	waited, some := feed.Await(r.Context())
	if !some {
		return nil, none, errNoVersion
	}
	fields := feed.Vary()
	if len(fields) == 0 {
		return feed, waited, nil
	}
	key, sent, differs := varied(key, fields, r.Header)
	switch {
	case !differs:
		return feed, waited, nil
	case sent["Cookie"] != nil || len(key) > maxVariant || !s.engine.variants.admit(feed.URL(), key):
		return nil, none, errNoVersion
	}
	if feed, err = c.FeedFrom(key, &variant{s.site, sent}); err != nil {
		return nil, none, err
	}
	if feed.Due() {
		s.site.route.Store(routeOf(r, next))
	}
	if waited, some = feed.Await(r.Context()); !some {
		return nil, none, errNoVersion
	}
	return feed, waited, nil
}

// maxVariant is the longest key of a variant, in bytes.
const maxVariant = 2048

var errNoVersion = errors.New("nothing to serve")

// answer serves the feed, if the defences let its reader have it.
func (s *Shield) answer(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, feed *cache.Feed, waited cache.Waited, key string) error {
	note := s.engine.observe(r, key, feed)
	if s.Defend != nil {
		if no := s.Defend.judge(s.engine.gate, r, &note); no != nil {
			no.write(w, r)
			s.engine.ledger.Note(note)
			return nil
		}
	}
	sent, err := feed.ServeAfter(waited, w, r)
	if err != nil {
		return next.ServeHTTP(w, r) // it has been withdrawn in this moment
	}
	note.Status, note.Bytes = sent.Status, sent.Bytes
	if s.Defend != nil {
		s.engine.gate.Answered(s.Defend.defence, note)
	}
	s.engine.ledger.Note(note)
	return nil
}

// serveShared answers as a shared cache does.
func (s *Shield) serveShared(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	responses, err := s.engine.sharedCache()
	if err != nil || r.Header["Upgrade"] != nil {
		return next.ServeHTTP(w, r)
	}
	return responses.ServeHTTP(w, r, s.hostOf(r)+targetOf(r), routeOf(r, next))
}

// targetOf is the path and query that the rest of the route is asked for.
func targetOf(r *http.Request) string {
	target := r.URL.EscapedPath()
	if r.URL.RawQuery != "" || r.URL.ForceQuery {
		target += "?" + r.URL.RawQuery
	}
	return target
}

// hostOf is the host under which feeds are kept: one that the operator has
// written, never just what a request says. A request that reaches a site without
// a host in its address could otherwise plant feeds under any name.
func (s *Shield) hostOf(r *http.Request) string {
	if s.Host != "" {
		return strings.ToLower(s.Host)
	}
	host := strings.ToLower(r.Host)
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if server, ok := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server); ok && addressed(server, name) {
		return name + portOf(local, r.TLS != nil)
	}
	if local == nil {
		return "localhost"
	}
	return local.String()
}

// addressed reports whether a server's configuration names a host.
func addressed(server *caddyhttp.Server, name string) bool {
	for _, route := range server.Routes {
		for _, set := range route.MatcherSets {
			for _, m := range set {
				hosts, ok := m.(*caddyhttp.MatchHost)
				if !ok {
					continue
				}
				for _, pattern := range *hosts {
					if strings.EqualFold(pattern, name) || covers(pattern, name) {
						return true
					}
				}
			}
		}
	}
	return false
}

// covers reports whether a pattern such as *.example.com covers a host.
func covers(pattern, name string) bool {
	domain, ok := strings.CutPrefix(strings.ToLower(pattern), "*.")
	_, rest, below := strings.Cut(name, ".")
	return ok && below && rest == domain
}

// portOf is the port of a listener as a URL writes it: nothing for the scheme's own.
func portOf(local net.Addr, https bool) string {
	if local == nil {
		return ""
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil || port == "80" && !https || port == "443" && https {
		return ""
	}
	return ":" + port
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Shield)(nil)
	_ caddy.CleanerUpper          = (*Shield)(nil)
	_ caddyhttp.MiddlewareHandler = (*Shield)(nil)
)
