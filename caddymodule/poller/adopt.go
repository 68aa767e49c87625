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

// Parts are the parts of an engine that are not configured.
type Parts struct {
	// Origin makes the polls.
	Origin *upstream.Client
	// Open opens the store. If it is nil, the configured store is opened.
	Open func(context.Context, *zap.Logger) (store.Store, error)
	// Now and Suspended are the machine's clock, as in [cache.Options].
	Now       func() time.Time
	Suspended func() time.Duration
	// Node is this node's name in the store. Default: the ID of the Caddy instance.
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

// Adopt registers an engine made of p for the SQLite store in a directory. Apps whose
// configuration names that directory use this engine. Tests call it to run Caddy with
// their own origins and clock. release drops the reference; the engine ends when no
// configuration uses it either.
func Adopt(directory string, p Parts) (release func() error, err error) {
	key := "sqlite:" + directory
	_, _, err = engines.LoadOrNew(key, func() (caddy.Destructor, error) {
		return newEngine(p), nil
	})
	return func() error { _, err := engines.Delete(key); return err }, err
}
