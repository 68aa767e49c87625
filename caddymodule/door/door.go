// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package door reads what a request says about its sender and its site.
//
// The handlers call [Read] first, and ask the [Request] that it returns from then on. client.go
// says who the sender is, host.go which names the site has and who may own them, othersite.go
// whether a page of another site has sent the request, and refusal.go answers with an error.
// The handlers decide what the request is for, a feed or a page, and whether its sender may have
// that.
package door

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// Request is a request as a handler gets it, and what it says about its sender and its site.
// Its Host is the name by which Caddy has found the site.
type Request struct {
	*http.Request

	// Server is the server that got the request, or nil.
	Server *caddyhttp.Server

	// Trusted says that the request comes from a proxy that Caddy trusts (`trusted_proxies`). Only
	// then do X-Forwarded-Host and X-Forwarded-Proto count.
	Trusted bool

	// Client is who sent the request, as far as addresses show it.
	Client Client

	// Forwarded is the second name of the site: the X-Forwarded-Host of a trusted proxy, with a port
	// if it was sent with one, or "". Many proxies pass that field on as a client sent it, so it never
	// stands for Host alone.
	Forwarded string

	// Scheme is http or https, as a trusted proxy says or as the request came.
	Scheme string

	// Sent is the URL before handlers rewrote it, and SentURI the target of the request line. They are
	// URL and RequestURI if Caddy has not recorded others.
	Sent    *url.URL
	SentURI string
}

// Read returns what a request says. It takes no lock and no memory, so that a feed in memory is
// answered as fast as without it.
func Read(r *http.Request) (in Request) {
	ctx := r.Context()
	vars, _ := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any)
	in.Request, in.Scheme, in.Sent, in.SentURI = r, "http", r.URL, r.RequestURI
	in.Server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	in.Trusted, _ = vars[caddyhttp.TrustedProxyVarKey].(bool)
	address, _ := vars[caddyhttp.ClientIPVarKey].(string)
	in.Client = clientOf(r, in.Server, address, in.Trusted)
	if r.TLS != nil {
		in.Scheme = "https"
	}
	if in.Trusted {
		in.Forwarded = forwardedHost(r.Header)
		if proto := strings.ToLower(r.Header.Get("X-Forwarded-Proto")); proto == "http" || proto == "https" {
			in.Scheme = proto
		}
	}
	if original, ok := ctx.Value(caddyhttp.OriginalRequestCtxKey).(http.Request); ok && original.URL != nil {
		in.Sent, in.SentURI = original.URL, original.RequestURI
	}
	return in
}

// User returns the name of the user whom a handler before this one has authenticated, or "".
func (r *Request) User() string {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return ""
	}
	user, _ := repl.GetString("http.auth.user.id")
	return user
}
