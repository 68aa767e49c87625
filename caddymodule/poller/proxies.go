// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"reflect"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// CheckProxies warns once of a server whose proxies can be made to say anything of a client. The
// server may be nil.
func (a *App) CheckProxies(server *caddyhttp.Server) {
	if server == nil || a.checked[server] || !trustsProxies(server) {
		return
	}
	a.checked[server] = true
	if server.TrustedProxiesStrict == 0 {
		a.log.Warn("trusted_proxies without trusted_proxies_strict: Caddy takes the first address of X-Forwarded-For as the client's, and clients write it. " +
			"Gateways and shields trust no such address alone; for everything else write the line `trusted_proxies_strict` into the global option `servers`")
	}
	if slices.ContainsFunc(server.ClientIPHeaders, func(name string) bool { return strings.EqualFold(name, "Forwarded") }) {
		a.log.Warn("client_ip_headers Forwarded: Caddy cannot read the addresses in that field, so clients behind the proxy have none: " +
			"have the proxy send X-Forwarded-For, and take Forwarded out of the line")
	}
}

// trustsProxies reports whether a server has the line trusted_proxies. Caddy keeps what it has made of
// the line to itself.
func trustsProxies(server *caddyhttp.Server) bool {
	source := reflect.ValueOf(server).Elem().FieldByName("trustedProxies")
	return server.TrustedProxiesUnix || server.TrustedProxiesRaw != nil || source.IsValid() && !source.IsNil()
}
