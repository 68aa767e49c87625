// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/upstream"
)

// Parts are what an engine is made of, besides what is configured.
type Parts struct {
	// Origin makes the polls.
	Origin *upstream.Client
	// Open opens a store in place of the one that is configured. Nil: that one.
	Open func(context.Context, *zap.Logger) (store.Store, error)
	// Now and Suspended are the machine's clock, as [cache.Options] has it.
	Now       func() time.Time
	Suspended func() time.Duration
	// Node is this node's name in the store. Empty: the ID of the Caddy instance.
	Node string
}

// node returns this node's name in the store. It is the same in the next process,
// unless Caddy's data directory cannot be written.
func (p *Parts) node() string {
	if p.Node != "" {
		return p.Node
	}
	id, err := caddy.InstanceID()
	if err != nil {
		return rand.Text()
	}
	return id.String()
}

// Adopt puts an engine of these parts in the place where an app looks for the engine of
// an SQLite store's directory, before a configuration names it: a whole Caddy can be tested
// with origins that are not on the network, and on a machine whose clock is not this
// one's. release gives it up. With the last configuration that uses it, it ends.
func Adopt(directory string, p Parts) (release func() error, err error) {
	key := "sqlite:" + directory
	_, _, err = engines.LoadOrNew(key, func() (caddy.Destructor, error) {
		return newEngine(p), nil
	})
	return func() error { _, err := engines.Delete(key); return err }, err
}
