// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package gateway is the handler feed_gateway, which serves feeds at paths and by URL.
//
// serve.go is the way of a request, which package door has read. byurl.go finds the URL in it. access.go
// and subscriptions.go decide whether the client may have the feed; unavailable.go answers if the feed
// waits for its first poll. pages.go serves the pages, and accesslog.go keeps tokens out of the access log.
package gateway

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

func init() {
	caddy.RegisterModule(Gateway{})
}

// Gateway serves feeds from a cache that polls their origins politely: chosen
// feeds at chosen paths, and any feed whose URL is written after the slash, as in
// `https://feeds.home.arpa/https://example.com/feed.xml`.
//
// Readers get an ETag, 304 and compression, and the last good version if the origin
// fails.
//
// A gateway that serves one feed at a path of its own, and to the household any feed by URL:
//
//	{
//		"handler": "feed_gateway",
//		"feeds": [{"path": "/rachel.xml", "url": "https://rachelbythebay.com/w/atom.xml"}],
//		"clients": ["private"]
//	}
//
// Requests that are neither for a feed nor for a page of the gateway go to the next
// handler. Handlers that decide who may read, such as `basic_auth` or `respond @outside
// 403`, run before the gateway. So do `handle` and `route`: if one of them matches every
// request, put the gateway into it.
type Gateway struct {
	// Feeds at chosen paths. Any client that can reach this handler may read them. The
	// query of a request is ignored.
	Feeds []Feed `json:"feeds,omitempty"`

	// A subscription list (OPML file), as feed readers export it. Its feeds may be
	// requested by URL, and others only if `allow` matches their host. They count as the
	// operator's, as those of `feed` lines do. Where a listed feed
	// redirects is served too, unless `deny` covers it or its address is private. The file is read
	// again when it changes. Placeholders are replaced. In the Caddyfile, a path is
	// relative to that file.
	OPML string `json:"opml,omitempty"`

	// The hosts whose feeds may be requested by URL: `example.com`, or `*.example.com` for
	// all hosts below it. If a feed redirects, the host that it leads to counts too (add
	// `www.example.com`), unless a line `feed` or `opml` names the feed.
	// Placeholders are replaced. Default: any public host; with `opml`, only the feeds of that list.
	Allow []string `json:"allow,omitempty"`

	// The hosts whose feeds may not be requested by URL, nor by the URL of a feed that
	// redirects there. It overrides `allow` and `opml`, and does not concern feeds at
	// chosen paths. Placeholders are replaced.
	Deny []string `json:"deny,omitempty"`

	// The clients that may request feeds by URL: address ranges (CIDR), `private` for
	// private, loopback and link-local addresses, or `any`. Behind another proxy, set
	// Caddy's `trusted_proxies` and `trusted_proxies_strict`. Without them every client has
	// the address of the proxy, and `private` refuses requests that a proxy has forwarded.
	// A range with the address of such a proxy admits all who reach the proxy. With `any`, the whole
	// internet can fetch through the gateway; name the hosts that it may reach in `allow`. All
	// who come by `any`, or by a public range shorter than /8 (IPv6: /16), count as one owner,
	// and see no lists.
	// Placeholders are replaced. Default: `private`.
	Clients []string `json:"clients,omitempty"`

	// Secrets by name. A client with a secret may request feeds by URL from any address,
	// as in `/~<secret>/https://example.com/feed.xml`. A secret has at least 8 characters;
	// `openssl rand -hex 16` makes a good one. Write `{env.NAME}` or `{file./path}` instead
	// of the secret to keep it out of the configuration. The access log shows `/~***/`
	// instead. If there are tokens, every path that begins with `/~` belongs to the
	// gateway, and never reaches the handlers after it.
	Tokens map[string]string `json:"tokens,omitempty"`

	// Whether scripts of any web page may read the feeds
	// (`Access-Control-Allow-Origin: *`): by URL those that the gateway knows. Default: `false`.
	CORS bool `json:"cors,omitempty"`

	// Readers has no effect. The version before this one had it.
	Readers bool `json:"readers,omitempty"`

	// Whether there are pages for people, at `/` and below `/-/`. Default: `true`.
	Pages *bool `json:"pages,omitempty"`

	log       *zap.Logger
	engine    *poller.Engine
	requests  *poller.Requests
	accessLog *zap.Logger
	server    *caddyhttp.Server // that the gateway belongs to, or nil
	access    *access
	// mayServe and mayServeNamed are access.checkFrom, for feeds by URL that the configuration does not name
	// and that it does.
	mayServe, mayServeNamed func(from string) error

	pages       *pages.Pages
	paths       map[string]string              // canonical URLs of configured feeds, by decoded path
	rulesAround func(feedurl.URL) policy.Rules // see rulesAround; nil: not read from a Caddyfile
	chosen      map[string]string              // the first of these paths of each feed, escaped, by its canonical URL
	origins     map[string]bool                // of these feeds
}

// Feed is a feed at a path.
type Feed struct {
	// The path of the feed at the gateway, which begins with a slash.
	Path string `json:"path"`

	// The URL of the feed at its origin. Placeholders such as `{env.FEED_URL}` are
	// replaced, which keeps the key of a private feed out of the configuration.
	URL string `json:"url"`

	// The rules for this feed. If several gateways name the feed, the strictest value
	// of each field counts.
	config.Policy
}

// CaddyModule returns the Caddy module information.
func (Gateway) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "http.handlers.feed_gateway",
		New: func() caddy.Module { return new(Gateway) },
	}
}

// Provision resolves access and paths, and registers the feeds with the app.
func (g *Gateway) Provision(ctx caddy.Context) error {
	g.log = ctx.Logger()
	loaded, err := ctx.App("pollard")
	if err != nil {
		return fmt.Errorf("getting the pollard app: %w", err)
	}
	app := loaded.(*poller.App)
	repl := caddy.NewReplacer()
	if g.access, err = newAccess(g, repl); err != nil {
		return err
	}
	g.accessLog = ctx.Logger(new(caddyhttp.App)).Named("log").Named("access")
	g.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	app.CheckProxies(g.server)
	if err := g.resolveFeeds(app, repl); err != nil {
		return err
	}
	if g.access.clients.open() {
		g.log.Warn("clients admits everyone on the internet: all of them share one part of polls and space, and see no lists; give your readers a `token` each, or list the feeds in `opml`")
		if !g.access.hasAllow && g.access.list == nil {
			g.log.Warn("clients admits everyone on the internet, who can fetch any public URL through this gateway; name the hosts that it may fetch from in `allow`")
		}
	}
	if g.Readers {
		g.log.Warn("readers does nothing any more: " + noReaders + "; delete it")
	}
	g.makePages(ctx, app)
	return nil
}

// noReaders says why there are no statistics of a gateway's readers.
const noReaders = "a gateway counts its readers and remembers none of them; who asks is in the access log, and a shield has statistics"

func (g *Gateway) resolveFeeds(app *poller.App, repl *caddy.Replacer) error {
	g.engine, g.access.private = app.Engine(), app.NamedOnly
	g.mayServe = func(from string) error { return g.access.checkFrom(from, false) }
	g.mayServeNamed = func(from string) error { return g.access.checkFrom(from, true) }
	g.requests = g.engine.GatewayRequests()
	app.AddNames(g)
	g.paths, g.chosen, g.origins = make(map[string]string, len(g.Feeds)), make(map[string]string, len(g.Feeds)), make(map[string]bool)
	for i := range g.Feeds {
		f := &g.Feeds[i]
		path, err := f.path()
		if err != nil {
			return err
		}
		if _, ok := g.paths[path]; ok {
			return fmt.Errorf("feed %s is given twice", f.Path)
		}
		raw, err := config.Replace(repl, f.URL)
		if err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
		feed, err := feedurl.ParseWritten(raw)
		if err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
		if err := app.Name(feed, f.Policy); err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
		g.paths[path], g.origins[feed.Origin()] = feed.String(), true
		if g.chosen[feed.String()] == "" {
			g.chosen[feed.String()] = (&url.URL{Path: path}).EscapedPath()
		}
	}
	return nil
}

func (f *Feed) path() (string, error) {
	if !strings.HasPrefix(f.Path, "/") {
		return "", fmt.Errorf("feed %s: the path must begin with a slash: expected feed <path> <url>", f.Path)
	}
	path, err := url.PathUnescape(f.Path)
	if err != nil || strings.ContainsAny(f.Path, "?#*{") {
		return "", fmt.Errorf("feed %s: expected a path without query, fragment, star or placeholder", f.Path)
	}
	if strings.HasPrefix(path, pagesBelow) {
		return "", fmt.Errorf("feed %s: paths below /-/ are pages of the gateway: choose another one", f.Path)
	}
	return path, nil
}

// check reports invalid settings, as far as they are known before placeholders are replaced.
func (f *Feed) check() error {
	if _, err := f.path(); err != nil {
		return err
	}
	if !strings.Contains(f.URL, "{") {
		if _, err := feedurl.ParseWritten(f.URL); err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
	}
	if err := f.Policy.Check(); err != nil {
		return fmt.Errorf("feed %s: %w", f.Path, err)
	}
	return nil
}

// Interface guards.
var (
	_ caddy.Provisioner           = (*Gateway)(nil)
	_ caddyhttp.MiddlewareHandler = (*Gateway)(nil)
)
