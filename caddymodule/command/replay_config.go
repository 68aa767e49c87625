// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/shield"
	"github.com/feedpollard/pollard/feedurl"
	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/readers/replay"
)

// configure takes over what the configuration says for the feed: the rules and
// defences of the shield before it, else the rules of the gateway that has it.
func (o *replayOptions) configure(r *replay.Options) error {
	apps, err := appsOfConfig(o.config)
	if err != nil {
		return err
	}
	var tree any
	if err := json.Unmarshal(apps["http"], &tree); err != nil && len(apps["http"]) > 0 {
		return fmt.Errorf("reading %s: %w", o.config, err)
	}
	part := shieldOf(tree, r.Path)
	if part == nil {
		return o.configureGateway(r)
	}
	s := new(shield.Shield)
	if err := json.Unmarshal(part, s); err != nil {
		return fmt.Errorf("reading %s: feed_shield: %w", o.config, err)
	}
	if s.RFC9111 {
		return fmt.Errorf("reading %s: a feed_shield with rfc9111 has no polls to replay", o.config)
	}
	if err := s.Validate(); err != nil {
		return fmt.Errorf("reading %s: feed_shield: %w", o.config, err)
	}
	if r.Rules, err = s.Policy.Over(r.Rules); err != nil {
		return fmt.Errorf("reading %s: feed_shield: %w", o.config, err)
	}
	if s.Defend == nil {
		return nil
	}
	ctx, _ := caddy.NewContext(caddy.Context{Context: context.Background()}) // for as long as the command runs
	if err := s.Defend.Provision(ctx); err != nil {
		return fmt.Errorf("reading %s: feed_shield: defend: %w", o.config, err)
	}
	r.Defence, r.Exempt = s.Defend.Defence(), s.Defend.ExemptsReplayed
	return nil
}

// configureGateway takes over the rules of a gateway's feed; those for all feeds
// where no gateway names it.
func (o *replayOptions) configureGateway(r *replay.Options) error {
	app, err := appOfConfig(o.config)
	if err != nil {
		return err
	}
	r.Rules = app.Rules()
	if d, err := document.Read(r.Feed, r.Header.Get("Content-Type"), time.Now()); err == nil {
		if self, err := feedurl.Canonical(d.Hints.Self); err == nil {
			r.Rules = app.RulesFor(self)
		}
	}
	return nil
}

// shieldOf finds the first feed_shield in a part of a configuration that lies on
// the way of a path, however deep in routes it is. With an empty path, every
// shield does.
func shieldOf(part any, path string) []byte {
	switch part := part.(type) {
	case []any:
		for _, p := range part {
			if found := shieldOf(p, path); found != nil {
				return found
			}
		}
	case map[string]any:
		if part["handler"] == "feed_shield" {
			raw, err := json.Marshal(part)
			if err != nil {
				return nil // it came out of JSON
			}
			return raw
		}
		if sets, ok := part["match"].([]any); ok && path != "" && !admits(sets, path) {
			return nil
		}
		for _, name := range slices.Sorted(maps.Keys(part)) { // always the same first one
			if found := shieldOf(part[name], path); found != nil {
				return found
			}
		}
	}
	return nil
}

// admits reports whether a route's matchers admit a path, as far as they look at
// paths by pattern. Others, by host for example, are taken to.
func admits(sets []any, path string) bool {
	r := &http.Request{Method: http.MethodGet, Host: "replay.invalid", URL: &url.URL{Path: path}, Header: make(http.Header)}
	r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil)
	for _, set := range sets {
		matchers, ok := set.(map[string]any)
		if !ok {
			continue
		}
		patterns, ok := matchers["path"].([]any)
		if !ok {
			return true
		}
		var match caddyhttp.MatchPath
		for _, pattern := range patterns {
			if text, ok := pattern.(string); ok {
				match = append(match, text)
			}
		}
		if match.Provision(caddy.Context{}) != nil {
			return true
		}
		if admitted, err := match.MatchWithError(r); err != nil || admitted {
			return true
		}
	}
	return len(sets) == 0
}
