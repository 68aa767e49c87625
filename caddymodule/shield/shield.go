// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package shield is the handler feed_shield, which serves a site's own feeds from a cache.
//
// A request has a key (key.go), which is everything that a shared response depends on. The
// engine's cache serves the feed of a key, and polls the origin block for it (poll.go, origin.go,
// responder.go). Requests and responses that cannot be shared pass through (request.go,
// passthrough.go), and those that come back are refused (loop.go). detect.go detects feeds, entries.go is the memory of keys, defend.go refuses
// requests, status.go serves the pages.
package shield

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/feedpollard/pollard/cache/store"
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
// Pollard polls it, conditionally if it gives an ETag or Last-Modified. Readers get what the
// site made, byte for byte.
//
// A stored feed answers all requests that RFC 9111 section 4.1 lets it answer. Others reach the
// origin unchanged, and so do responses pass that are not feeds, or that are `private` or
// `no-store`. Once a feed is stored, readers see no errors of the origin.
//
// The block starts without variables, captures and the root of the site: write what it needs,
// such as `root`, into it. Decide who may read a feed before the shield, with
// `respond @outside 403`. docs/shield.md says what is shared and what is not.
//
//	{
//		"handler": "feed_shield",
//		"origin": {"routes": [{"handle": [{"handler": "reverse_proxy", "upstreams": [{"dial": "localhost:8081"}]}]}]},
//		"min_interval": "2m",
//		"query": {"keep": ["page"]},
//		"vary": {"ignore": ["User-Agent"]},
//		"status": "/feed/status"
//	}
type Shield struct {
	// The handlers that make the feeds, such as `reverse_proxy`, `php_fastcgi` or
	// `file_server`. Requests that they do not answer go to the handlers after the shield, as
	// they came, and are not shared. Two shields with the same block share feeds (see docs/shield.md).
	// Feeds of a block that has changed start without a version: deploy the backend first. Required.
	Origin *caddyhttp.Subroute `json:"origin,omitempty"`

	// How often the origin is polled. The rules of the app `pollard` do not apply here,
	// and the defaults are those for a site of your own:
	//
	// - `min_interval` and `default_interval` are `1m`;
	// - of the hints only HTTP freshness counts (`s-maxage`, `max-age`, `Expires`), up to
	//   `max_interval`, which is `24h`. The feed's own hints (`ttl`, `skipHours`, ...)
	//   become the `max-age` of readers, and do not hold back a new entry;
	//   `unvalidated_interval` has no effect;
	// - after failures the pause grows to ten minutes; `Retry-After` counts.
	//
	// While a feed has no stored version, its readers wait for the first poll, at most for
	// `timeout`. If the poll takes longer, the origin answers them directly.
	config.Policy

	// The part of a request's query that belongs to the feed's URL: `ignore` for none of
	// it, `keep` for the named parameters. Use it against requests that invent queries to
	// reach the site. Default: the whole query.
	Query *Query `json:"query,omitempty"`

	// The header fields that do not keep a response from being shared, although the origin says
	// that it varies by them (`Vary`). All readers get what a poll gets, which has Pollard's
	// `User-Agent`, an `Accept` for feeds and no other field. `*` and `Authorization` cannot
	// be ignored. Default: none.
	Vary Vary `json:"vary,omitzero"`

	// The path for publish pings, such as `/feed/ping`: forms with `hub.mode=publish` and
	// `hub.url=<address of a feed>`, as publishers send them to WebSub hubs. The feed is polled
	// as soon as `min_interval` has passed since the last poll, without waiting for a reader.
	// Any client may send one; it costs the site at most one poll of a feed per `min_interval`.
	// The shield's matcher must match the path. Default: no pings.
	Ping string `json:"ping,omitempty"`

	// The requests to refuse. Default: none.
	Defend *Defend `json:"defend,omitempty"`

	// The path of the pages for people, such as `/feed/status`: the shield's feeds, why
	// each waits, and its readers. Clients with a private, loopback or link-local address
	// may see them under the name of a site, a local name or an address, and clients that a
	// handler before the shield has authenticated (`basic_auth`). The page that says who polls is public. The shield's matcher must
	// match the path. Default: no pages.
	Status string `json:"status,omitempty"`

	originLines caddyfile.Segment // of the Caddyfile

	log      *zap.Logger
	app      *poller.App
	engine   *poller.Engine
	requests *poller.Requests
	identity string // of the origin block
	owner    store.Owner
	rules    policy.Rules
	client   *upstream.Client
	origin   *origin
	entries  *entries
	stored   *storedFeeds // for publish pings
	pages    *pages.Pages // nil without status
	viewer   pages.Viewer // of the pages

	upstreams []string // addresses in the origin block
	loop      *loop
}

// CaddyModule returns the Caddy module information.
func (Shield) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.feed_shield",
		New: func() caddy.Module { return new(Shield) },
	}
}

// Provision resolves the configuration, and registers the shield with the app.
func (s *Shield) Provision(ctx caddy.Context) error {
	s.log = ctx.Logger()
	if err := s.check(); err != nil {
		return err
	}
	if err := s.identify(); err != nil { // before the modules in the block are loaded
		return err
	}
	loaded, err := ctx.App("pollard")
	if err != nil {
		return fmt.Errorf("getting the pollard app: %w", err)
	}
	app := loaded.(*poller.App)
	s.app = app
	if s.rules, err = s.Policy.Over(poller.ShieldRules()); err != nil {
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
	app.CheckProxies(server)
	s.origin = newOrigin(s.Origin, server, s.log)
	s.origin.mark, s.loop = s.markLoop, &loop{logged: rate.Sometimes{Interval: time.Minute}}
	s.client = newClient(app.Upstream())
	s.engine, s.requests = app.Engine(), app.Engine().ShieldRequests()
	kept, _, err := memories.LoadOrNew(s.identity, newEntries)
	if err != nil {
		return err
	}
	s.entries, s.stored = kept.(*entries), new(storedFeeds)
	s.makePages(ctx, app)
	app.AddShield(s.identity, s)
	return nil
}

// identify computes the identity of the shield, and warns of what its origin block lacks.
func (s *Shield) identify() error {
	block, err := s.block()
	if err != nil {
		return err
	}
	content := inspect(block)
	for _, warning := range content.warnings() {
		s.log.Warn(warning)
	}
	s.upstreams = content.upstreams
	s.identity, err = identityOf(block, s.Vary.Ignore)
	s.owner = store.OwnerOf(store.KindShield, s.identity)
	return err
}

// Cleanup drops the reference to the memory that Provision took, if it got that far.
func (s *Shield) Cleanup() error {
	if s.entries == nil {
		return nil
	}
	_, err := memories.Delete(s.identity)
	return err
}

var errNoOrigin = errors.New("feed_shield needs an origin: put the handlers of the site into a block of it, such as origin { reverse_proxy localhost:8080 }, on three lines")

func (s *Shield) check() error {
	if s.Origin == nil || len(s.Origin.Routes) == 0 {
		return errNoOrigin
	}
	if _, err := s.Policy.Over(poller.ShieldRules()); err != nil {
		return err
	}
	if err := checkVaryIgnore(s.Vary.Ignore); err != nil {
		return err
	}
	if err := errors.Join(checkPath("status", s.Status), checkPath("ping", s.Ping)); err != nil {
		return err
	}
	if home := strings.TrimRight(s.Status, "/"); s.Ping != "" && s.Status != "" && (s.Ping == home || strings.HasPrefix(s.Ping, home+"/")) {
		return fmt.Errorf("ping: %s is below status, which has the pages: expected another path", s.Ping)
	}
	return s.Query.check()
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Shield)(nil)
	_ caddy.CleanerUpper          = (*Shield)(nil)
	_ caddyhttp.MiddlewareHandler = (*Shield)(nil)
)
