// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
)

// Store is a module of the namespace pollard.stores. Modules may be provisioned while
// another configuration runs, so they use neither files nor the network before Open.
type Store interface {
	// Key identifies the stored data. Configurations with the same key share one engine.
	// It is not shown, because it may contain a password.
	Key() string
	// String describes the store in logs and responses.
	String() string
	// Open opens the store.
	Open(ctx context.Context, log *zap.Logger) (store.Store, error)
}

// loadStore loads the configured store, or SQLite.
func (a *App) loadStore(ctx caddy.Context) error {
	if len(a.StoreRaw) == 0 {
		a.StoreRaw = json.RawMessage(`{"engine":"sqlite"}`)
	}
	loaded, err := ctx.LoadModule(a, "StoreRaw")
	if err != nil {
		return fmt.Errorf("store: %w", err)
	}
	store, ok := loaded.(Store)
	if !ok {
		return fmt.Errorf("store: module %T is none", loaded)
	}
	a.store = store
	return nil
}
