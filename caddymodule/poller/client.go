// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"
	"net/netip"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Private reports whether an address is private, loopback or link-local.
func Private(address netip.Addr) bool {
	return address.IsPrivate() || address.IsLoopback() || address.IsLinkLocalUnicast()
}

// Forwarded reports whether a proxy that Caddy does not trust forwarded a request. If so,
// [Client] may return the proxy's address, which may be private although the client's is not.
func Forwarded(r *http.Request) bool {
	if r.Header["X-Forwarded-For"] == nil && r.Header["Forwarded"] == nil && r.Header["X-Real-Ip"] == nil {
		return false
	}
	trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool)
	return !trusted
}

// User returns the name of the user whom a handler before this one has authenticated, or "".
func User(r *http.Request) string {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	user, _ := repl.GetString("http.auth.user.id")
	return user
}
