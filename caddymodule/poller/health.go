// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// readyTimeout is how long the store has to answer a question about its health.
const readyTimeout = 2 * time.Second

// health answers programs that start, stop and balance servers. They may ask by HEAD as well.
type health func(ctx context.Context) error

func (h health) ServeHTTP(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		return apiError(http.StatusMethodNotAllowed, errors.New("health is asked for by GET or HEAD"))
	}
	w.Header().Set("Cache-Control", "no-store")
	if err := h(r.Context()); err != nil {
		return apiError(http.StatusServiceUnavailable, err)
	}
	return writeJSON(w, map[string]string{"status": "ok"})
}

// ready reports why readers should be sent to another server: the store is being opened, or is away.
func ready(ctx context.Context) error {
	_, c := Running()
	if c == nil {
		return errNotRunning()
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return c.CheckStore(ctx)
}

// live reports nothing: a process that answers is of use, as without a store it serves what is in memory, and tables that
// are brought up must not be interrupted.
func live(context.Context) error { return nil }

// Interface guards.
var _ caddy.AdminHandler = health(nil)
