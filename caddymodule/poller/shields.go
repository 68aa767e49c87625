// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"errors"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// Shield is a handler in front of its own origin.
type Shield interface {
	// OriginOf returns the origin at which the feed of a key is polled.
	OriginOf(k ShieldKey) cache.Origin
	// Rules returns the operator's rules for its feeds.
	Rules() policy.Rules
}

// AddShield registers a shield by its identity, which is part of the keys of its feeds. Shields
// with one identity have the same origin block, and share their feeds.
func (a *App) AddShield(identity string, s Shield) {
	a.shields[identity] = append(a.shields[identity], s)
}

// Shielding reports whether the configuration in force has shields.
func (e *Engine) Shielding() bool {
	shields := e.shields.Load()
	return shields != nil && len(*shields) > 0
}

// shieldsOf returns the shields of a key in the configuration in force.
func (e *Engine) shieldsOf(key string) ([]Shield, ShieldKey) {
	shields := e.shields.Load()
	k, ok := ParseShieldKey(key)
	if !ok || shields == nil {
		return nil, k
	}
	return (*shields)[k.Shield], k
}

// originOf returns the origin at which a shielded feed is polled, or nil if its shield is not
// configured.
func (e *Engine) originOf(key string) cache.Origin {
	shields, k := e.shieldsOf(key)
	if len(shields) == 0 {
		return nil
	}
	return shields[0].OriginOf(k)
}

// rulesOf returns a function for the rules of feeds: those of the app, or the stricter ones of
// their shields.
func (e *Engine) rulesOf(app func(key cache.Key) policy.Rules) func(key cache.Key) policy.Rules {
	return func(key cache.Key) policy.Rules {
		if key.URL().String() != "" {
			return app(key)
		}
		shields, _ := e.shieldsOf(key.String())
		if len(shields) == 0 {
			return app(key)
		}
		rules := shields[0].Rules()
		for _, s := range shields[1:] {
			rules = rules.Stricter(s.Rules())
		}
		return rules
	}
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
	if err == nil && feed.Due() && e.originOf(key) == nil {
		return nil, errNoShield
	}
	return feed, err
}
