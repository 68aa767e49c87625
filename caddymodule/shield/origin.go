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

// origin is the origin block of a shield. It serves requests of readers and polls. For both it
// starts with the same variables, so what it lacks fails for all of them.
type origin struct {
	handlers *caddyhttp.Subroute
	server   *caddyhttp.Server // that the block belongs to, or nil
	local    net.Addr          // where server listens
	log      *zap.Logger
	mark     func(http.Header) // marks what the block is asked
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

// noRoot is the variable root that a block starts with: a directory that does not exist. Without
// it, file_server would serve the working directory.
const noRoot = "/nonexistent/no-root-in-origin"

// serve answers a reader's request. If the block does not answer it, next does, with the request as
// it came.
func (o *origin) serve(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	outer, _ := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if outer == nil {
		outer = caddy.NewEmptyReplacer()
	}
	inner := caddy.NewReplacer()
	inner.Map(func(key string) (any, bool) {
		if key == "http.request.uuid" { // one identifier for one request
			return outer.Get(key)
		}
		return nil, false
	})
	// A shallow copy, as the server adds trailers to the maps of r.
	in := r.WithContext(r.Context())
	in.Header = r.Header.Clone()
	o.mark(in.Header)
	target := *r.URL
	in.URL = &target
	in = caddyhttp.PrepareRequest(in, inner, w, o.server)
	ctx := in.Context()
	for _, name := range []string{caddyhttp.ClientIPVarKey, caddyhttp.TrustedProxyVarKey} {
		if value := caddyhttp.GetVar(r.Context(), name); value != nil {
			caddyhttp.SetVar(ctx, name, value)
		}
	}
	caddyhttp.SetVar(ctx, "root", noRoot)
	for _, key := range []caddy.CtxKey{caddyhttp.OriginalRequestCtxKey, caddyhttp.ExtraLogFieldsCtxKey} {
		if value := r.Context().Value(key); value != nil {
			ctx = context.WithValue(ctx, key, value)
		}
	}
	*in = *in.WithContext(ctx) // the replacer has this pointer
	err := o.handlers.ServeHTTP(w, in, caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		return next.ServeHTTP(w, r)
	}))
	outer.Map(inner.Get) // logs show placeholders such as {http.reverse_proxy.upstream.latency}
	return err
}

// pollContextKey marks the context of polls.
type pollContextKey struct{}

// isPoll reports whether a request is a poll of a shield.
func isPoll(r *http.Request) bool { return r.Context().Value(pollContextKey{}) != nil }

// pollAddress is the remote address of polls. It is in no range that an operator would trust,
// so a response that is only for some addresses is not stored for all.
const pollAddress = "0.0.0.0:0"

var errNoHandler = errors.New("no handler of the origin block has answered")

// poll sends a poll for a key to the block. The poll depends on the key and on the header
// fields of r only. It has no body.
func (o *origin) poll(r *http.Request, k poller.ShieldKey) (*http.Response, error) {
	unanswered := caddyhttp.HandlerFunc(func(http.ResponseWriter, *http.Request) error { return errNoHandler })
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

// prepare returns the request that Caddy's handlers get.
func (o *origin) prepare(ctx context.Context, r *http.Request, w http.ResponseWriter, k poller.ShieldKey) *http.Request {
	target := urlOf(k.Target())
	in := &http.Request{
		Method: r.Method, URL: target, RequestURI: k.Target(), Host: k.Host, Header: r.Header.Clone(), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: pollAddress,
	}
	if k.Scheme == "https" { // by TLS handlers recognise it
		in.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: (&url.URL{Host: k.Host}).Hostname()}
	}
	o.mark(in.Header)
	if k.Forwarded != "" {
		in.Header.Set("X-Forwarded-Host", k.Forwarded)
	}
	ctx = context.WithValue(ctx, pollContextKey{}, true)
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, o.local) // placeholders need it
	if k.Sent != "" {                                               // as it was before handlers rewrote it
		in.URL, in.RequestURI = urlOf(k.Sent), k.Sent
	}
	in = caddyhttp.PrepareRequest(in.WithContext(ctx), caddy.NewReplacer(), w, o.server)
	in.URL, in.RequestURI = target, target.RequestURI()
	caddyhttp.SetVar(in.Context(), "root", noRoot)
	if k.Forwarded != "" { // without this, reverse_proxy would replace the field
		caddyhttp.SetVar(in.Context(), caddyhttp.TrustedProxyVarKey, true)
	}
	return in
}

// urlOf returns the URL of a request as a server has it: without scheme and host.
func urlOf(target string) *url.URL {
	u, err := url.ParseRequestURI(target)
	if err != nil { // no server lets such a request in
		return &url.URL{Path: target}
	}
	return u
}
