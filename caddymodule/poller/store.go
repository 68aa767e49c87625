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

// Store is a module of the namespace pollard.stores: where feeds are kept. Modules
// are provisioned beside a running server, so they touch nothing before Open.
type Store interface {
	// Key names what is kept: of all configurations with one key, one engine has it
	// open. It is not shown, as there may be a password in it.
	Key() string
	// String is the store as it is shown and logged.
	String() string
	// Open opens the store.
	Open(ctx context.Context, log *zap.Logger) (store.Store, error)
	// Remote reports whether the store may be out of reach while the process runs.
	Remote() bool
}

// loadStore loads the store that is configured, or the one that is the default.
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
	a.settings.store = store
	return nil
}
