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

// origin is the origin block of a shield. It serves requests of readers, which it gets
// unchanged, and polls.
type origin struct {
	handlers *caddyhttp.Subroute
	server   *caddyhttp.Server // that the block belongs to, or nil
	local    net.Addr          // where server listens
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

// serve answers a reader's request. If the block does not answer it, next does.
func (o *origin) serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	return o.handlers.ServeHTTP(w, r, next)
}

// pollContextKey marks the context of polls.
type pollContextKey struct{}

// isPoll reports whether a request is a poll of a shield.
func isPoll(r *http.Request) bool { return r.Context().Value(pollContextKey{}) != nil }

// pollAddress is the remote address of polls. It is in no range that an operator would trust,
// so a response that is only for some addresses is not stored for all.
const pollAddress = "0.0.0.0:0"

var errUnanswered = errors.New("no handler of the origin block has answered")

// poll sends a poll for a key to the block. The poll depends on the key and on the header
// fields of r only. It has no body.
func (o *origin) poll(r *http.Request, k poller.ShieldKey) (*http.Response, error) {
	unanswered := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return errUnanswered })
	resp, err := roundTrip(r, func(ctx context.Context, w http.ResponseWriter) *http.Request {
		return o.prepare(ctx, r, w, k)
	}, func(w http.ResponseWriter, r *http.Request) error {
		return o.handlers.ServeHTTP(w, r, unanswered)
	})
	if panicked, ok := errors.AsType[*panicError](err); ok {
		o.log.Error("the origin block panicked", zap.Any("panic", panicked.value), zap.ByteString("stack", panicked.stack))
	}
	return resp, err
}

// prepare returns the request that Caddy's handlers get. It starts without variables and
// placeholders.
func (o *origin) prepare(ctx context.Context, r *http.Request, w http.ResponseWriter, k poller.ShieldKey) *http.Request {
	asked := targetOf(k.Path, k.Query)
	in := &http.Request{
		Method: r.Method, URL: asked, RequestURI: asked.RequestURI(), Host: k.Host, Header: r.Header.Clone(), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: pollAddress,
	}
	if k.Scheme == "https" { // by TLS handlers recognise it
		in.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true}
	}
	ctx = context.WithValue(ctx, pollContextKey{}, true)
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, o.local) // placeholders need it
	in = in.WithContext(ctx)
	in = caddyhttp.PrepareRequest(in, caddy.NewReplacer(), w, o.server)
	if k.Target != "" {
		in.URL = targetOf(k.Target, k.Query)
	}
	return in
}

// targetOf returns the URL of a request as a server has it: without scheme and host.
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
