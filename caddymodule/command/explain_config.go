// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"

	"github.com/feedpollard/pollard/caddymodule/gateway"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/feedurl"
)

// appOfConfig returns the app of a configuration file with the rules of all the
// feeds that are named in it, without starting anything.
func appOfConfig(path string) (*poller.App, error) {
	apps, err := appsOfConfig(path)
	if err != nil {
		return nil, err
	}
	app, err := poller.Resolve(apps["pollard"])
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	var tree any
	if err := json.Unmarshal(apps["http"], &tree); err != nil && len(apps["http"]) > 0 {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if err := nameFeeds(app, tree); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return app, nil
}

// appsOfConfig returns the apps of a configuration file, by name.
func appsOfConfig(path string) (map[string]json.RawMessage, error) {
	config, err := os.ReadFile(path)
	if err != nil {
		return nil, err // names the path already
	}
	if !strings.HasSuffix(strings.ToLower(path), ".json") {
		adapter := caddyconfig.GetAdapter("caddyfile")
		if adapter == nil {
			return nil, fmt.Errorf("reading %s: this binary has no Caddyfile adapter", path)
		}
		if config, _, err = adapter.Adapt(config, map[string]any{"filename": path}); err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
	}
	var parts struct {
		Apps map[string]json.RawMessage `json:"apps"`
	}
	if err := json.Unmarshal(config, &parts); err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return parts.Apps, nil
}

// nameFeeds names the feeds of all gateways in a part of a configuration, however
// deep in routes they are.
func nameFeeds(app *poller.App, part any) error {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			if err := nameFeeds(app, p); err != nil {
				return err
			}
		}
	case map[string]any:
		if part["handler"] == "feed_gateway" {
			return nameGatewayFeeds(app, part)
		}
		for _, p := range part {
			if err := nameFeeds(app, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func nameGatewayFeeds(app *poller.App, part map[string]any) error {
	raw, err := json.Marshal(part)
	if err != nil {
		return err
	}
	var g gateway.Gateway
	if err := json.Unmarshal(raw, &g); err != nil {
		return fmt.Errorf("feed_gateway: %w", err)
	}
	for _, f := range g.Feeds {
		// A placeholder may have no value here, as the service's environment is
		// another one. Such a feed cannot be asked about by its URL then.
		raw, err := caddy.NewReplacer().ReplaceOrErr(f.URL, true, true)
		if err != nil {
			continue
		}
		feed, err := feedurl.Canonical(raw)
		if err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
		if err := app.Name(feed, f.Policy); err != nil {
			return fmt.Errorf("feed %s: %w", f.Path, err)
		}
	}
	return nil
}
