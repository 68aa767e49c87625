// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package poller is the app pollard, which polls feeds for all gateways and shields of
// a Caddy process.
//
// The app parses the configuration (app.go, caddyfile.go), resolves the rules of each
// feed (rules.go), and passes them to an engine
// that outlives reloads (engine.go). The engine counts requests and polls (requests.go,
// metrics.go), emits events (events.go) and counts readers (counters.go).
// The admin API (admin.go) and the stores (store.go) are here too.
package poller

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

func init() {
	caddy.RegisterModule(App{})
}

// App polls feeds for all gateways and shields of a Caddy process. They share one
// poller, so that each origin sees one polite client.
//
// Every field is optional, and so is the app itself.
type App struct {
	// Where feeds and the times of their next polls are stored. Default: `sqlite`, in the
	// directory `pollard` of Caddy's data directory.
	StoreRaw json.RawMessage `json:"store,omitempty" caddy:"namespace=pollard.stores inline_key=engine"`

	// The memory for feeds that are requested often, in bytes. Other feeds are read
	// from the store when they are requested. A new value takes effect at the next
	// start, not at a reload. The Caddyfile takes a size such as `64MiB`. Default: 64 MiB.
	Memory int64 `json:"memory,omitempty"`

	// The URL of a page or an e-mail address at which publishers can reach the operator.
	// It becomes part of the User-Agent: `Pollard/<version> (+<contact>; <n>
	// subscribers)`. Placeholders such as `{env.CONTACT}` are replaced. Default: the
	// project's page.
	Contact string `json:"contact,omitempty"`

	// A User-Agent that replaces Pollard's own. Prefer `contact`: many publishers
	// block clients that do not identify themselves. Placeholders are replaced.
	UserAgent string `json:"user_agent,omitempty"`

	// The rules for all feeds. A host or a feed can override each of them.
	config.Policy

	// How long a feed is prefetched after its last request, or after a `feed` or `opml` line
	// first named it. Default: `30d`.
	IdleAfter caddy.Duration `json:"idle_after,omitempty"`

	// Whether feeds are polled in the background when they are due and it is their turn,
	// those of `feed` and `opml` lines before the first request. If not, a feed that is due
	// is polled at its next request. Default: `false`.
	Prefetch bool `json:"prefetch,omitempty"`

	// The private, loopback and other non-public addresses that polls, and so readers of a
	// gateway, may reach: CIDR ranges, or `private_ranges` for all of them. The public addresses
	// of this machine count as private at other ports than 80 and 443, and so do other machines
	// on its IPv6 links: `private_ranges` does not cover them, and a `feed` or `opml` line that
	// names a host there needs no range. Placeholders are replaced. Default: none.
	PrivateUpstreams []string `json:"private_upstreams,omitempty"`

	// The least time between the starts of two polls of a site, which is all hosts of a
	// registrable domain; 0 for none. Default: `2s`.
	Spacing *caddy.Duration `json:"spacing,omitempty"`

	// The most polls of a host at the same time, and half of those of its site. Default: 1.
	Concurrency int `json:"concurrency,omitempty"`

	// The proxy for polls: an `http`, `https`, `socks5` or `socks5h` URL, in which
	// placeholders are replaced. docs/network.md says which proxies must refuse private
	// addresses. Default: none.
	Proxy string `json:"proxy,omitempty"`

	// The URL at which hubs reach a gateway, such as `https://feeds.example.com`. With it,
	// Pollard subscribes to the hubs that feeds name (WebSub), and polls when they push (see
	// docs/network.md). Handlers before a gateway must let requests for `/-/websub/` through.
	// Hubs are asked over https. A feed at a private address needs a hub at a private address
	// that `private_upstreams` covers, and only such a hub may be asked over http. Placeholders
	// are replaced. Default: none.
	WebSub string `json:"websub,omitempty"`

	// The most polls at the same time. Default: 128.
	Polls int `json:"polls,omitempty"`

	// The most bytes to store. When the store is full, feeds are forgotten, but never
	// those of `feed` and `opml` lines (see docs/disk.md). The Caddyfile takes a size such as
	// `10GiB`. Default: 10 GiB.
	Disk int64 `json:"disk,omitempty"`

	// Rules for the feeds of some hosts. If several patterns match a host, each field
	// comes from the most specific pattern that sets it.
	Hosts []Host `json:"hosts,omitempty"`

	log      *zap.Logger
	upstream upstream.Settings
	cache    cache.Settings
	store    Store
	rules    policy.Rules               // for all feeds
	hosts    feedurl.HostTable[*Host]   // for the feeds of a host
	feeds    map[string]policy.Rules    // for the feeds that handlers name, by canonical URL
	private  map[string]bool            // of these, those that are not public; true: private_upstreams covers the address
	names    []Names                    // by gateway
	shields  map[string][]Shield        // of the configuration, by identity
	engine   *Engine                    // nil: the app holds none
	checked  map[*caddyhttp.Server]bool // see CheckProxies

}

// CaddyModule returns the Caddy module information.
func (App) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{
		ID:  "pollard",
		New: func() caddy.Module { return new(App) },
	}
}

// Provision resolves the configuration and gets an engine. It changes nothing that a
// running configuration uses, and opens no file.
func (a *App) Provision(ctx caddy.Context) error {
	a.log, a.checked = ctx.Logger(), make(map[*caddyhttp.Server]bool)
	if err := a.check(); err != nil {
		return err
	}
	repl := caddy.NewReplacer()
	if err := a.resolveSettings(repl); err != nil {
		return err
	}
	if _, err := net.InterfaceAddrs(); err != nil {
		a.log.Warn("the addresses of this machine cannot be looked up, so that polls may reach all its ports: "+
			"a unit of systemd needs AF_NETLINK in RestrictAddressFamilies", zap.Error(err))
	}
	if err := a.loadStore(ctx); err != nil {
		return err
	}
	e, _, err := engines.LoadOrNew(a.store.Key(), func() (caddy.Destructor, error) {
		return newEngine(Parts{Origin: upstream.New()}), nil
	})
	if err != nil {
		return fmt.Errorf("making the engine: %w", err)
	}
	a.engine = e.(*Engine) // from here on there is something to undo
	if err := a.engine.metrics.register(ctx.GetMetricsRegistry()); err != nil {
		return err
	}
	return connect(ctx, a)
}

// Resolve returns the app of a JSON configuration, which may be empty, with rules and
// settings but without an engine.
func Resolve(config json.RawMessage) (*App, error) {
	a := new(App)
	if len(config) > 0 {
		if err := caddy.StrictUnmarshalJSON(config, a); err != nil {
			return nil, err
		}
	}
	if err := a.check(); err != nil {
		return nil, fmt.Errorf("pollard: %w", err)
	}
	if err := a.resolveSettings(caddy.NewReplacer()); err != nil {
		return nil, fmt.Errorf("pollard: %w", err)
	}
	return a, nil
}

// check returns an error if a setting is invalid, and resolves the rules. It looks at
// nothing but the configuration.
func (a *App) check() error {
	for _, n := range []struct {
		name  string
		value int64
	}{{"memory", a.Memory}, {"disk", a.Disk}, {"polls", int64(a.Polls)}, {"concurrency", int64(a.Concurrency)}} {
		if n.value < 0 {
			return fmt.Errorf("%s: %d is negative", n.name, n.value)
		}
	}
	if a.Spacing != nil && *a.Spacing < 0 {
		return fmt.Errorf("spacing: %s is negative", config.FormatDuration(*a.Spacing))
	}
	if a.IdleAfter < 0 {
		return fmt.Errorf("idle_after: %s is negative", config.FormatDuration(a.IdleAfter))
	}
	if err := checkContact(a.Contact); err != nil {
		return fmt.Errorf("contact: %w", err)
	}
	if err := checkProxy(a.Proxy); err != nil {
		return fmt.Errorf("proxy: %w", err)
	}
	if _, err := parseWebSub(a.WebSub); err != nil {
		return fmt.Errorf("websub: %w", err)
	}
	return a.resolveRules()
}

// resolveSettings computes the settings of polls and of the cache.
func (a *App) resolveSettings(repl *caddy.Replacer) (err error) {
	a.feeds, a.private, a.shields = make(map[string]policy.Rules), make(map[string]bool), make(map[string][]Shield)
	origin := upstream.Settings{Version: Version()}
	if origin.Contact, err = config.Replace(repl, a.Contact); err != nil {
		return fmt.Errorf("contact: %w", err)
	}
	if err := checkContact(origin.Contact); err != nil {
		return fmt.Errorf("contact: %w", err)
	}
	if origin.UserAgent, err = config.Replace(repl, a.UserAgent); err != nil {
		return fmt.Errorf("user_agent: %w", err)
	}
	ranges, err := config.Words(repl, a.PrivateUpstreams)
	if err != nil {
		return fmt.Errorf("private_upstreams: %w", err)
	}
	if origin.Private, err = config.ParseCIDRs(ranges); err != nil {
		return fmt.Errorf("private_upstreams: %w", err)
	}
	if origin.Hosts, err = a.hostRules(repl); err != nil {
		return err
	}
	webSub, err := config.Replace(repl, a.WebSub)
	if err == nil {
		webSub, err = parseWebSub(webSub)
	}
	if err != nil {
		return fmt.Errorf("websub: %w", err)
	}
	origin.Own, origin.Chosen = a.NamesPrivate, a.namesOrigin
	a.upstream = origin
	a.cache = cache.Settings{
		Rules:     a.rulesOf,
		Site:      a.originOf,
		Listed:    a.listed,
		Prefetch:  a.Prefetch,
		IdleAfter: time.Duration(a.IdleAfter),
		Polls:     a.Polls,
		Disk:      a.Disk,
		WebSub:    webSub,
		LogName:   ReadersURL,
		Log:       a.log,
	}
	return nil
}

// Engine returns the app's engine. It is nil before Provision.
func (a *App) Engine() *Engine { return a.engine }

// Upstream returns the settings of polls: who makes them, and how hosts are paced.
func (a *App) Upstream() upstream.Settings { return a.upstream }

// Rules returns the rules of feeds for which neither a host nor the feed sets others.
func (a *App) Rules() policy.Rules { return a.rules }

// Start takes over the engine of the previous configuration, or opens it.
func (a *App) Start() error {
	a.cache.Feeds = slices.Sorted(maps.Keys(a.feeds))
	for _, feed := range slices.Sorted(maps.Keys(a.private)) {
		a.log.Info("feed at a private address is polled, as the configuration names it", zap.String("feed", feedurl.Redact(feed)))
	}
	return a.engine.takeOver(a)
}

// Stop releases the engine, unless a newer configuration uses it.
func (a *App) Stop() error {
	a.engine.release(a)
	return nil
}

// Cleanup drops the reference to the engine that Provision took, if it got that far.
func (a *App) Cleanup() error {
	if a.engine == nil {
		return nil
	}
	_, err := engines.Delete(a.store.Key())
	return err
}

// parseWebSub returns the URL below which callbacks are, without a slash at the end.
func parseWebSub(base string) (string, error) {
	if base == "" || config.HasPlaceholder(base) {
		return base, nil
	}
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", fmt.Errorf("%q is not the URL of a gateway: expected %s", feedurl.Redact(base), webSubExpected)
	case strings.Contains(u.Path, "/~"):
		return "", errors.New("the URL has a token, which hubs must not learn: write it without")
	}
	return strings.TrimRight(base, "/"), nil
}

const webSubExpected = "the URL at which hubs reach a gateway, such as https://feeds.example.com"

// checkContact returns an error if a contact is neither a URL nor an e-mail address.
func checkContact(contact string) error {
	if contact == "" || strings.Contains(contact, "{") {
		return nil // none, or unknown until placeholders are replaced
	}
	if u, err := url.Parse(contact); err == nil && !strings.ContainsAny(contact, " ()\"") {
		switch {
		case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
			return nil
		case u.Scheme == "mailto" && strings.Contains(u.Opaque, "@"):
			return nil
		case u.Scheme == "" && strings.Contains(contact, "@"):
			return nil
		}
	}
	return fmt.Errorf("%q is not a contact: expected the URL of a page such as https://example.com/about, or an e-mail address", contact)
}

// Interface guards.
var (
	_ caddy.App          = (*App)(nil)
	_ caddy.Provisioner  = (*App)(nil)
	_ caddy.CleanerUpper = (*App)(nil)
)
