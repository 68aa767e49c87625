// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package shield is the handler feed_shield, which serves a site's own feeds from a cache.
//
// A request has a key (key.go), which is everything that a shared response depends on. The
// engine's cache serves the feed of a key, and polls the origin block for it (poll.go, origin.go,
// responder.go). Requests and responses that cannot be shared pass through (request.go,
// passthrough.go). detect.go detects feeds, entries.go is the memory of keys, defend.go refuses
// requests, status.go serves the pages.
package shield

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

func init() {
	caddy.RegisterModule(Shield{})
}

// Shield serves a site's own feeds from a cache, so that the site makes each feed once
// per interval and not once per request. The site is the `origin`: a block of handlers.
// Pollard polls it, at most once per interval and feed, conditionally if it gives an ETag
// or Last-Modified.
//
// Requests that cannot share a response reach the origin unchanged: methods other than
// GET and HEAD, and requests with credentials. Responses that are not feeds, that are
// `private` or `no-store`, and redirects pass through unchanged too. Once a feed is
// stored, readers see no errors of the origin. A `private` response, a redirect, 401 or
// 410 removes the stored feed.
//
// A poll carries no cookies, no credentials and nothing that handlers before the shield
// have set, and comes from the address `0.0.0.0`. So decide who may read a feed before
// the shield, with `basic_auth` or `respond @outside 403`. Write what the origin needs,
// such as `root`, into its block.
type Shield struct {
	// The handlers that make the feeds, such as `reverse_proxy`, `php_fastcgi` or
	// `file_server`. Requests that they do not answer go to the handlers after the shield,
	// and are not shared. Required.
	Origin *caddyhttp.Subroute `json:"origin,omitempty"`

	// How often the origin is polled. The rules of the app `pollard` do not apply here,
	// and the defaults are those for a site of your own:
	//
	// - `min_interval` and `default_interval` are `1m`;
	// - of the hints only HTTP freshness counts (`s-maxage`, `max-age`, `Expires`), up to
	//   `max_interval`, which is `24h`. What the feed itself asks for (`ttl`, `skipHours`, ...)
	//   is told to readers by `max-age`, and does not hold back a new entry;
	//   `unvalidated_interval` has no effect;
	// - after failures the pause grows to ten minutes; `Retry-After` counts.
	//
	// While a feed has no stored version, its readers wait for the first poll, at most for
	// `timeout`. If the poll takes longer, the origin answers them directly.
	//
	// `POST /pollard/refresh?url=` at Caddy's admin endpoint, for example from a
	// publish hook, makes the next request poll the feed at once, whatever these say.
	config.Policy

	// The part of a request's query that belongs to the feed's URL: `ignore` for none of
	// it, `keep` for the named parameters. Use it against requests that invent queries to
	// reach the site. Default: the whole query.
	Query *Query `json:"query,omitempty"`

	// The name under which the shield stores its feeds. It should stay the same when the
	// configuration changes, and no two shields may have the same. The Caddyfile derives it
	// from the site's address and the matcher. Default: the first of `sites`.
	Name string `json:"name,omitempty"`

	// The addresses of the site, as in a Caddyfile: `blog.example.com`, `*.example.com`,
	// `http://blog.example.com:8080`. Polls are for one of these hosts. A request for another
	// host is not shared, so a site for any host (`:8080`) needs `host`. The Caddyfile fills
	// them in.
	Sites []string `json:"sites,omitempty"`

	// The host of polls, whatever host readers use. Default: the one of `sites` that a request
	// is for.
	Host string `json:"host,omitempty"`

	// The requests to refuse. Default: none.
	Defend *Defend `json:"defend,omitempty"`

	// The path of the pages for people, such as `/feed/status`: the shield's feeds, why
	// each waits, and its readers. Clients with a private, loopback or link-local address
	// may see them, and clients that a handler before the shield has authenticated
	// (`basic_auth`). The page that says who polls is public. The shield's matcher must
	// match the path. Default: no pages.
	Status string `json:"status,omitempty"`

	originLines caddyfile.Segment // of the Caddyfile
	derived     string            // name that the Caddyfile derives
	line        string            // file and line of the directive

	log       *zap.Logger
	engine    *poller.Engine
	name      string // resolved
	host      string // of Host, resolved
	addresses []address
	rules     policy.Rules
	client    *upstream.Client
	origin    *origin
	entries   *entries
	pages     *pages.Pages // nil without status
}

// CaddyModule returns the Caddy module information.
func (Shield) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.feed_shield",
		New: func() caddy.Module { return new(Shield) },
	}
}

// DefaultRules returns the rules for shielded feeds. They are documented at [Shield].
func DefaultRules() policy.Rules {
	r := policy.DefaultRules()
	r.MinInterval, r.DefaultInterval, r.OwnSite = time.Minute, time.Minute, true
	return r
}

// Provision resolves the configuration, and registers the shield with the app.
func (s *Shield) Provision(ctx caddy.Context) error {
	s.log = ctx.Logger()
	var written poller.ShieldConfig // before the modules in it are loaded
	var err error
	if written.All, err = json.Marshal(s); err != nil {
		return err
	}
	if written.Origin, err = json.Marshal(s.Origin); err != nil {
		return err
	}
	loaded, err := ctx.App("pollard")
	if err != nil {
		return fmt.Errorf("getting the pollard app: %w", err)
	}
	app := loaded.(*poller.App)
	if err := s.check(); err != nil {
		return err
	}
	if err := s.resolveSite(caddy.NewReplacer()); err != nil {
		return err
	}
	if s.rules, err = s.Policy.Over(DefaultRules()); err != nil {
		return err
	}
	if s.Defend != nil {
		if err := s.Defend.Provision(ctx); err != nil {
			return fmt.Errorf("defend: %w", err)
		}
	}
	if err := s.Origin.Provision(ctx); err != nil {
		return fmt.Errorf("origin: %w", err)
	}
	server, _ := ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	s.origin = newOrigin(s.Origin, server, s.log)
	s.client = newClient(app.Upstream())
	s.engine = app.Engine()
	s.entries = app.Keep("feed_shield "+s.name, newEntries).(*entries)
	if s.Host == "" && len(s.addresses) == 0 {
		s.log.Warn("nothing is shared, because the site is for any host: add a line such as host blog.example.com to feed_shield", zap.String("shield", s.name))
	}
	s.makePages(ctx, app)
	return app.AddShield(s.name, written, s)
}

// Validate reports invalid settings.
func (s *Shield) Validate() error { return s.check() }

// errNoOrigin says what is missing, with an example.
//
//lint:ignore ST1005 it ends with lines of a Caddyfile
var errNoOrigin = errors.New(`feed_shield needs an origin: put the handlers of the site into a block of it, such as

	origin {
		reverse_proxy localhost:8080
	}
`)

func (s *Shield) check() error {
	if s.Origin == nil || len(s.Origin.Routes) == 0 {
		return errNoOrigin
	}
	if _, err := s.Policy.Over(DefaultRules()); err != nil {
		return err
	}
	if s.Host != "" && !strings.Contains(s.Host, "{") { // placeholders are replaced later
		if _, err := parseHost(s.Host); err != nil {
			return err
		}
	}
	if err := s.checkStatus(); err != nil {
		return err
	}
	return s.Query.check()
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Shield)(nil)
	_ caddy.Validator             = (*Shield)(nil)
	_ caddyhttp.MiddlewareHandler = (*Shield)(nil)
	_ poller.Shield               = (*Shield)(nil)
)
