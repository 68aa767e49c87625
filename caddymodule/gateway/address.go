// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// siteAddress returns the scheme and host that a request was sent to.
func siteAddress(r *http.Request) string {
	scheme, host := "http", r.Host
	if r.TLS != nil {
		scheme = "https"
	}
	if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
		if proto := r.Header.Get("X-Forwarded-Proto"); proto == "http" || proto == "https" {
			scheme = proto
		}
		if name := r.Header.Get("X-Forwarded-Host"); name != "" {
			host = name
		}
	}
	return scheme + "://" + host
}
