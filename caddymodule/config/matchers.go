// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Paths returns the patterns of the path matcher among a directive's matchers. It returns
// nil if the Caddyfile does not say which paths can match.
func Paths(matchers caddy.ModuleMap) caddyhttp.MatchPath {
	var paths caddyhttp.MatchPath
	if err := json.Unmarshal(matchers["path"], &paths); err != nil || slices.ContainsFunc(paths, HasPlaceholder) {
		return nil
	}
	if err := paths.Provision(caddy.Context{}); err != nil {
		return nil // reported when the matcher is loaded
	}
	return paths
}

// Admits reports whether a path matcher matches a path. A nil matcher matches every path.
func Admits(paths caddyhttp.MatchPath, path string) bool {
	if paths == nil {
		return true
	}
	r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path}, Header: make(http.Header)}
	yes, err := paths.MatchWithError(caddyhttp.PrepareRequest(r, caddy.NewReplacer(), nil, nil))
	return yes || err != nil
}
