// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/poller"
)

// addressOf tells the address at which a feed has been asked for, for the document to
// give as its own. It is nil where feeds are served as their publishers gave them.
func (g *Gateway) addressOf(r *http.Request) func() string {
	if g.NoRewrite {
		return nil
	}
	return func() string { return g.address(r) }
}

func (g *Gateway) address(r *http.Request) string {
	u := poller.OriginalURL(r)
	if u == nil {
		u = r.URL
	}
	address := siteAddress(r) + u.EscapedPath()
	if _, configured := g.places[r.URL.Path]; !configured && u.RawQuery != "" {
		address += "?" + u.RawQuery // of a feed by URL it is a part of the URL
	}
	return address
}

// siteAddress is scheme and host for which a request was made.
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
