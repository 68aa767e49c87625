// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// serveHub answers a hub at a callback. It reports false for other requests: hubs are neither
// `clients` nor have tokens, so this comes before all checks.
func (g *Gateway) serveHub(w http.ResponseWriter, r *http.Request) bool {
	token, ok := strings.CutPrefix(r.URL.Path, cache.CallbackPath)
	if !ok || token == "" {
		return false
	}
	c, err := g.engine.Opened(r.Context())
	if err != nil {
		poller.RefusalOf(err).Write(w, r)
		return true
	}
	skip := caddyhttp.GetVar(r.Context(), caddyhttp.LogSkipVar)
	sent, done := g.hideToken(w, r)
	if !c.ServeHub(sent, r, token) {
		caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, skip)
		return false
	}
	done()
	return true
}
