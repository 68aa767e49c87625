// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// Shield is a handler in front of its own origin.
type Shield interface {
	// OriginOf returns the origin at which the feed of a key is polled, or nil if the
	// feed cannot be polled.
	OriginOf(k ShieldKey) cache.Origin
	// Rules returns the operator's rules for its feeds.
	Rules() policy.Rules
}

// ShieldConfig is the configuration of a shield, as JSON.
type ShieldConfig struct {
	All    []byte // all of it; shields with the same are one
	Origin []byte // the part that configures the origin
}

// shield is a shield of a configuration.
type shield struct {
	Shield
	config ShieldConfig
}

// AddShield registers a shield by its name, which is part of the keys of its feeds. It
// returns an error if another shield has the name. The same configuration may be
// added twice, because Caddy may put a site with several addresses on several servers.
func (a *App) AddShield(name string, config ShieldConfig, s Shield) error {
	if other, known := a.shields[name]; known && !bytes.Equal(other.config.All, config.All) {
		return fmt.Errorf("feed_shield: two shields have the name %q: give one of them a name of its own, such as name blog", name)
	}
	a.shields[name] = shield{s, config}
	return nil
}

// useShields puts the shields of a configuration in force. If the origin of a shield has
// changed, its stored feeds are dropped.
func (e *Engine) useShields(c *cache.Cache, shields map[string]shield) {
	e.shields.Store(&shields)
	for name, s := range shields {
		before, known := e.origins[name]
		e.origins[name] = s.config.Origin
		if !known || bytes.Equal(before, s.config.Origin) {
			continue
		}
		c.Drop(ShieldPrefix(name))
	}
}

// Shielding reports whether the configuration in force has shields.
func (e *Engine) Shielding() bool {
	shields := e.shields.Load()
	return shields != nil && len(*shields) > 0
}

// shieldOf returns the shield of a key in the configuration in force.
func (e *Engine) shieldOf(key string) (s Shield, k ShieldKey, ok bool) {
	shields := e.shields.Load()
	if k, ok = ParseShieldKey(key); !ok || shields == nil {
		return nil, k, false
	}
	s, ok = (*shields)[k.Shield]
	return s, k, ok
}

// originOf returns the origin at which a shielded feed is polled, or nil if it cannot
// be polled.
func (e *Engine) originOf(key string) cache.Origin {
	s, k, ok := e.shieldOf(key)
	if !ok {
		return nil
	}
	return s.OriginOf(k)
}

// rulesOf returns a function for the rules of feeds: those of their shield, or of the app.
func (e *Engine) rulesOf(app func(key cache.Key) policy.Rules) func(key cache.Key) policy.Rules {
	return func(key cache.Key) policy.Rules {
		if s, _, ok := e.shieldOf(key.String()); ok {
			return s.Rules()
		}
		return app(key)
	}
}

// errNoShield reports that the shield of a feed is not configured or has no origin for it.
var errNoShield = errors.New("no shield of this name is configured")

// Feed returns the feed of a shield's key, ready to be polled.
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

// Evict forgets a feed in the background, to make room for another one.
func (e *Engine) Evict(key string) {
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		c := e.cache.Load()
		if c == nil {
			return
		}
		if err := e.Forget(ctx, c, key); err != nil && !errors.Is(err, cache.ErrUnknownFeed) {
			if log := e.log.Load(); log != nil {
				log.Warn("feed that has to make room cannot be forgotten", zap.Error(err))
			}
		}
	}()
}

// Keep returns the value that the handler of a name keeps over reloads: the one of the
// configuration in force, or else the result of make. Other configurations do not see a
// new value before the app starts.
func (a *App) Keep(name string, make func() any) any {
	kept, known := a.kept[name]
	if !known {
		if kept, known = a.engine.keeps(name); !known {
			kept = make()
		}
		a.kept[name] = kept
	}
	return kept
}

// keeps returns the value that a handler of the configuration in force keeps.
func (e *Engine) keeps(name string) (kept any, known bool) {
	if all := e.kept.Load(); all != nil {
		kept, known = (*all)[name]
	}
	return kept, known
}
