// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/caddymodule/poller"
)

// origin is the block of handlers that a shield stands before. It is asked in two
// ways: with a reader's own request, which nothing touches, and with requests that
// Pollard makes for all readers.
type origin struct {
	handlers *caddyhttp.Subroute
	server   *caddyhttp.Server // that the block is part of; nil where that is not known
	local    net.Addr          // where the server listens
	log      *zap.Logger
}

func newOrigin(handlers *caddyhttp.Subroute, server *caddyhttp.Server, log *zap.Logger) *origin {
	o := &origin{handlers: handlers, server: server, local: &net.TCPAddr{IP: net.IPv4zero}, log: log}
	if server == nil || len(server.Listen) == 0 {
		return o
	}
	if listen, err := caddy.ParseNetworkAddress(server.Listen[0]); err == nil && !listen.IsUnixNetwork() {
		ip := net.ParseIP(listen.Host)
		if ip == nil {
			ip = net.IPv4zero
		}
		o.local = &net.TCPAddr{IP: ip, Port: int(listen.StartPort)}
	}
	return o
}

// own answers a reader's own request. What the block does not answer, the handlers
// after the shield do.
func (o *origin) own(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return o.handlers.ServeHTTP(w, r, next)
}

// madeKey marks the context of requests that Pollard has made.
type madeKey struct{}

// made reports whether a request is none of a reader but one that a shield has made.
func made(r *http.Request) bool { return r.Context().Value(madeKey{}) != nil }

// nobody is the address that made requests come from: there is none. It is in no
// range that an operator would trust, so what only neighbours may read is not
// stored for all.
const nobody = "0.0.0.0:0"

var errUnanswered = errors.New("no handler of the origin block has answered")

// ask sends a request of Pollard's own for what a key stands for. Besides the key
// it depends on nothing but its header fields. It must have no body.
func (o *origin) ask(r *http.Request, k poller.ShieldKey) (*http.Response, error) {
	unanswered := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return errUnanswered })
	resp, err := roundTrip(r, func(ctx context.Context, w http.ResponseWriter) (*http.Request, error) {
		return o.prepare(ctx, r, w, k), nil
	}, func(w http.ResponseWriter, r *http.Request) error {
		return o.handlers.ServeHTTP(w, r, unanswered)
	})
	if panicked, ok := errors.AsType[*panicError](err); ok {
		o.log.Error("the origin block panicked", zap.Any("panic", panicked.value), zap.ByteString("stack", panicked.stack))
	}
	return resp, err
}

// prepare makes a request into one that Caddy's handlers can serve. Their vars and
// placeholders begin empty.
func (o *origin) prepare(ctx context.Context, r *http.Request, w http.ResponseWriter, k poller.ShieldKey) *http.Request {
	asked := targetOf(k.Path, k.Query)
	in := &http.Request{
		Method: r.Method, URL: asked, RequestURI: asked.RequestURI(), Host: k.Host, Header: r.Header.Clone(), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: nobody,
	}
	if k.Scheme == "https" { // it is how handlers know
		in.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true}
	}
	ctx = context.WithValue(ctx, madeKey{}, true)
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, o.local) // placeholders take it for granted
	in = in.WithContext(ctx)
	in = caddyhttp.PrepareRequest(in, caddy.NewReplacer(), w, o.server)
	if k.Target != "" {
		in.URL = targetOf(k.Target, k.Query)
	}
	return in
}

// targetOf is the URL of a server's request: without scheme and host.
func targetOf(path, query string) *url.URL {
	u := &url.URL{Path: path, RawPath: path, RawQuery: query}
	if plain, err := url.PathUnescape(path); err == nil {
		u.Path = plain
	}
	if u.Path == u.RawPath {
		u.RawPath = ""
	}
	return u
}
