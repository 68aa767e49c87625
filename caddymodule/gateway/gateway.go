// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the handler feed_gateway, which serves feeds at paths and by URL.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/caddymodule/refusal"
	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/readers"
)

func init() {
	caddy.RegisterModule(Gateway{})
}

// Gateway serves feeds out of a cache that polls their origins politely: chosen
// feeds at chosen paths, and any feed whose URL is written after the slash, as in
// `https://feeds.home.arpa/https://example.com/feed.xml`.
//
// Readers get an ETag, 304 and compression, and the last good version whatever
// happens to the origin. How often origins are polled is decided by the app
// `pollard`, which all gateways share.
type Gateway struct {
	// Feeds at paths of their own. They are for everyone who reaches this handler.
	Feeds []Feed `json:"feeds,omitempty"`

	// A subscription list (OPML file), as feed readers export it. Its feeds may be
	// asked for by URL; others only where `allow` covers their host. The file is
	// read when the configuration is loaded: after a change, reload with `--force`.
	OPML string `json:"opml,omitempty"`

	// The hosts that may be asked for by URL: `example.com`, or `*.example.com` for
	// all hosts below it. Default: any public host, or those of `opml` alone where
	// that is given.
	Allow []string `json:"allow,omitempty"`

	// The hosts that may not be asked for by URL, whatever else allows them.
	Deny []string `json:"deny,omitempty"`

	// Who may ask by URL: address ranges (CIDR), `private` for private, loopback
	// and link-local addresses, or `any`. Behind another proxy, set Caddy's
	// `trusted_proxies`, or all clients have the address of that proxy. Default:
	// `private`.
	Clients []string `json:"clients,omitempty"`

	// Secrets by name. Who holds one may ask by URL from any address, as in
	// `/~<secret>/https://example.com/feed.xml`. Write `{env.NAME}` or
	// `{file./path}` rather than the secret: it stays out of the stored
	// configuration then. Access logs hold the paths of requests, and with them the
	// secrets: filter `request>uri` where logs are not as private as these.
	Tokens map[string]string `json:"tokens,omitempty"`

	// Whether web pages of any origin may read the feeds
	// (`Access-Control-Allow-Origin: *`). Default: `false`.
	CORS bool `json:"cors,omitempty"`

	// Whether there are no pages for people at `/`. Default: `false`.
	NoPages bool `json:"no_pages,omitempty"`

	// Whether feeds are served byte for byte as their origins gave them. Otherwise
	// relative links are made absolute, as readers would resolve them against the
	// gateway; a feed gives the address at which it was asked for as its own; and hubs
	// are left out, as some readers would move their subscription there. Where one
	// gateway says so, links are made absolute in none of the process. Default: `false`.
	NoRewrite bool `json:"no_rewrite,omitempty"`

	log    *zap.Logger
	engine *poller.Engine
	access *access
	places map[string]*place // by path, decoded
}

// Feed is a feed at a path.
type Feed struct {
	// The path at which readers ask for it, beginning with a slash. Their query
	// does not matter.
	Path string `json:"path"`

	// The URL of the feed at its origin. Placeholders such as `{env.FEED_URL}` are
	// replaced, so that the key of a private feed can stay out of the configuration.
	URL string `json:"url"`

	// The rules for this feed. Where two places name one feed, the stricter of
	// their rules holds, field by field.
	config.Policy
}

// place is a configured feed as requests find it.
type place struct {
	url   string // canonical
	tally *readers.Tally
}

// CaddyModule returns the Caddy module information.
func (Gateway) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.feed_gateway",
		New: func() caddy.Module { return new(Gateway) },
	}
}

// Provision resolves access and paths, and names the feeds to the app.
func (g *Gateway) Provision(ctx caddy.Context) error {
	g.log = ctx.Logger()
	app, err := ctx.App("pollard")
	if err != nil {
		return fmt.Errorf("getting the pollard app: %w", err)
	}
	repl := caddy.NewReplacer()
	var skipped int
	if g.access, skipped, err = newAccess(g, repl); err != nil {
		return err
	}
	if skipped > 0 {
		g.log.Warn("outlines without a URL that can be polled were passed over", zap.String("opml", g.OPML), zap.Int("outlines", skipped))
	}
	if g.NoRewrite {
		app.(*poller.App).KeepAsGiven()
	}
	return g.resolveFeeds(app.(*poller.App), repl)
}

func (g *Gateway) resolveFeeds(app *poller.App, repl *caddy.Replacer) error {
	g.engine = app.Engine()
	g.places = make(map[string]*place, len(g.Feeds))
	for i := range g.Feeds {
		f := &g.Feeds[i]
		path, err := f.path()
		if err != nil {
			return err
		}
		if _, known := g.places[path]; known {
			return fmt.Errorf("feed %s is given twice", f.Path)
		}
		raw, err := repl.ReplaceOrErr(f.URL, true, true)
		if err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
		feed, err := feedurl.Canonical(raw)
		if err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
		if err := app.Name(feed, f.Policy); err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
		g.places[path] = &place{url: feed, tally: g.engine.Census.Tally(feed)}
	}
	return nil
}

// path returns the path as requests have it, decoded.
func (f *Feed) path() (string, error) {
	if !strings.HasPrefix(f.Path, "/") {
		return "", fmt.Errorf("feed %s: the path must begin with a slash: expected feed <path> <url>", f.Path)
	}
	path, err := url.PathUnescape(f.Path)
	if err != nil || strings.ContainsAny(f.Path, "?#*") {
		return "", fmt.Errorf("feed %s: expected a path without query, fragment or star", f.Path)
	}
	return path, nil
}

// check reports what cannot be meant, without looking outside of the configuration.
func (f *Feed) check() error {
	if _, err := f.path(); err != nil {
		return err
	}
	if !strings.Contains(f.URL, "{") { // or not known before placeholders are replaced
		if _, err := feedurl.Canonical(f.URL); err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
	}
	if err := f.Policy.Check(); err != nil {
		return fmt.Errorf("feed %s: %w", f.Path, err)
	}
	return nil
}

// Header values that never change are assigned as they are: on a hit, time goes
// to nothing that can be prepared.
var (
	anyOrigin      = []string{"*"}
	exposedHeaders = []string{"Age, Cache-Status, ETag, Retry-After"}
)

// ServeHTTP serves the feed that a request asks for by path or by URL.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request, _ caddyhttp.Handler) error {
	if g.CORS {
		h := w.Header()
		h["Access-Control-Allow-Origin"] = anyOrigin
		h["Access-Control-Expose-Headers"] = exposedHeaders
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		g.answerOther(w, r)
		return nil
	}
	feed, tally, holder, err := g.find(r)
	if err == nil {
		var sent cache.Sent
		if sent, err = g.serve(w, r, feed, tally, holder); err == nil {
			g.engine.GatewayRequests().Served(sent)
			return nil
		}
		if u, ok := errors.AsType[*cache.Unavailable](err); ok && u.Elsewhere != "" {
			if err = g.elsewhere(w, r, u); err == nil {
				return nil
			}
		}
	}
	e := refusal.Of(err)
	g.engine.GatewayRequests().Refused(e.Status)
	if e.Status == http.StatusInternalServerError {
		return caddyhttp.Error(e.Status, err)
	}
	if c := g.log.Check(zap.DebugLevel, "refused"); c != nil {
		c.Write(zap.Int("status", e.Status), zap.String("reason", e.Reason))
	}
	e.Write(w, r)
	return nil
}

// serve serves a feed, and notes who asked for it.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, feed *cache.Feed, tally *readers.Tally, holder string) (cache.Sent, error) {
	tally.Note(r.UserAgent(), poller.Client(r))
	if g.engine.Unobserved() {
		return feed.ServeAt(g.addressOf(r), w, r)
	}
	note := g.engine.Observe(r, feed.Key(), feed)
	note.Token = holder
	sent, err := feed.ServeAt(g.addressOf(r), w, r)
	if err != nil {
		return cache.Sent{}, err
	}
	note.Status, note.Bytes = sent.Status, sent.Bytes
	g.engine.Ledger.Note(note)
	return sent, nil
}

// find returns the feed that a request asks for, and the name of the token that it
// holds, if it has one.
func (g *Gateway) find(r *http.Request) (*cache.Feed, *readers.Tally, string, error) {
	if p, ok := g.places[r.URL.Path]; ok {
		feed, err := g.feed(r.Context(), p.url)
		return feed, p.tally, "", err
	}
	by, ok := readByURL(r.URL, poller.OriginalURL(r))
	if !ok {
		return nil, nil, "", errNoSuchPath
	}
	canonical, err := feedurl.Canonical(by.target)
	if err != nil {
		return nil, nil, "", err
	}
	if no := g.access.admit(by, poller.Client(r), canonical); no != nil {
		return nil, nil, "", no
	}
	feed, err := g.feed(r.Context(), canonical)
	if err != nil {
		return nil, nil, "", err
	}
	if feed.Key() != canonical { // it has become an alias of a feed that is not for everybody, perhaps
		if no := g.access.admit(by, poller.Client(r), feed.Key()); no != nil {
			return nil, nil, "", no
		}
	}
	holder := ""
	if by.signed {
		holder = g.access.holder(by.secret)
	}
	return feed, g.engine.Census.Tally(canonical), holder, nil
}

var errNoSuchPath error = &refusal.Refusal{
	Status: http.StatusNotFound,
	Reason: "no such path: no feed is configured here, and it is not of the form /https://host/path",
}

// feed returns the handle of a feed, waiting for an engine that is starting.
func (g *Gateway) feed(ctx context.Context, canonical string) (*cache.Feed, error) {
	c, err := g.engine.Opened(ctx)
	if err != nil {
		return nil, err
	}
	feed, err := c.Feed(ctx, canonical)
	if err != nil {
		return nil, err
	}
	return feed.Resolve(ctx), nil
}

// answerOther answers the methods that ask for no feed.
func (g *Gateway) answerOther(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	allowed := "GET, HEAD"
	if g.CORS {
		allowed = "GET, HEAD, OPTIONS"
	}
	h.Set("Allow", allowed)
	if g.CORS && r.Method == http.MethodOptions {
		h.Set("Access-Control-Allow-Methods", "GET, HEAD")
		// Conditional requests of a script need leave for their headers (Fetch, "CORS-safelisted request-header").
		h.Set("Access-Control-Allow-Headers", "If-None-Match, If-Modified-Since, Cache-Control, A-IM")
		h.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
		return
	}
	e := &refusal.Refusal{Status: http.StatusMethodNotAllowed, Reason: "a feed can be read with GET or HEAD only"}
	g.engine.GatewayRequests().Refused(e.Status)
	e.Write(w, r)
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Gateway)(nil)
	_ caddyhttp.MiddlewareHandler = (*Gateway)(nil)
)
