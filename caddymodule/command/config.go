// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/command/replay"
	"github.com/feedpollard/pollard/caddymodule/config"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy/document"
)

// configuration is a configuration that has been loaded and provisioned as Caddy does
// it, and not been started: it can be asked what it says of feeds.
type configuration struct {
	poller *poller.App
	http   *caddyhttp.App // nil: there are no sites
}

// loadConfiguration loads a Caddyfile, or what another adapter of Caddy's reads. What
// runs beside is not touched. It lives as long as the command.
func loadConfiguration(file string) (*configuration, error) {
	text, err := adapted(file)
	if err != nil {
		return nil, err
	}
	var cfg caddy.Config
	if err := json.Unmarshal(text, &cfg); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	cfg.Admin = &caddy.AdminConfig{Disabled: true}
	// The log files of the server are not for what a command does.
	cfg.Logging = &caddy.Logging{Logs: map[string]*caddy.CustomLog{"default": {BaseLog: caddy.BaseLog{Level: "ERROR"}}}}
	ctx, err := caddy.ProvisionContext(&cfg)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w; where the environment of the service is missing, run the command with it", file, err)
	}
	app, err := ctx.App("pollard")
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	c := &configuration{poller: app.(*poller.App)}
	if sites, err := ctx.AppIfConfigured("http"); err == nil {
		c.http, _ = sites.(*caddyhttp.App)
	}
	return c, nil
}

// adapted returns a configuration as Caddy's JSON. A file whose name does not end with .json
// or the name of another adapter is a Caddyfile. caddycmd.LoadConfig does this too, but logs
// what it does, in the middle of the output of a command.
func adapted(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err // names the file
	}
	kind := strings.TrimPrefix(filepath.Ext(file), ".")
	if kind == "json" {
		return text, nil
	}
	adapter := caddyconfig.GetAdapter(kind)
	if adapter == nil {
		adapter = caddyconfig.GetAdapter("caddyfile")
	}
	if text, _, err = adapter.Adapt(text, map[string]any{"filename": file}); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	return text, nil
}

// appOrDefault returns the app of a configuration file, with the rules of all feeds that are
// named in it, or one of defaults if file is empty.
func appOrDefault(file string) (*poller.App, error) {
	if file == "" {
		return poller.Resolve(nil)
	}
	c, err := loadConfiguration(file)
	if err != nil {
		return nil, err
	}
	return c.poller, nil
}

// configure takes over what the configuration says for the feed: the rules and
// limits of the shield before it, else the rules of the gateway that has it, else
// those for all feeds.
func (o *replayOptions) configure(r *replay.Options) error {
	c, err := loadConfiguration(o.config)
	if err != nil {
		return err
	}
	if s := c.shieldOf(r.Path); s != nil {
		r.Rules, r.Limits = s.Rules(), s.ReplayedLimits
		return nil
	}
	r.Rules = c.poller.Rules()
	if d, err := document.Read(r.Feed, r.Header.Get("Content-Type"), time.Now()); err == nil {
		if self, err := feedurl.Parse(d.Hints.Self); err == nil {
			r.Rules = c.poller.RulesFor(self)
		}
	}
	return nil
}

// shieldOf is the first feed_shield that a request for a path comes to, as far as
// matchers look at paths. With an empty path, every shield does.
func (c *configuration) shieldOf(path string) poller.Shield {
	if c.http == nil {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(c.http.Servers), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // srv9 is before srv10
	})
	for _, name := range names {
		if s := shieldIn(c.http.Servers[name].Routes, path); s != nil {
			return s
		}
	}
	return nil
}

func shieldIn(routes caddyhttp.RouteList, path string) poller.Shield {
	for _, route := range routes {
		if path != "" && !admits(route.MatcherSets, path) {
			continue
		}
		for _, handler := range route.Handlers {
			switch h := handler.(type) {
			case poller.Shield:
				return h
			case *caddyhttp.Subroute:
				if s := shieldIn(h.Routes, path); s != nil {
					return s
				}
			}
		}
	}
	return nil
}

// admits reports whether matchers admit a path, as far as they look at paths by
// pattern. Others, by host for example, are taken to.
func admits(sets caddyhttp.MatcherSets, path string) bool {
	for _, set := range sets {
		admitted := true
		for _, m := range set {
			if match, ok := m.(*caddyhttp.MatchPath); ok {
				admitted = admitted && config.Admits(*match, path)
			}
		}
		if admitted {
			return true
		}
	}
	return len(sets) == 0
}
