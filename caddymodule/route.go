// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"strconv"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// route is the rest of a Caddy route, as an origin. It outlives the request that
// showed the way to it, of which it keeps nothing but what the operator's own
// handlers have made of it.
type route struct {
	next   caddyhttp.Handler
	server *caddyhttp.Server
	tls    bool
	// vars are what handlers before have set, such as the root of a file server.
	vars map[string]any
	// original is the URL before rewrites, as FastCGI scripts are told it.
	original *url.URL
}

// routeOf is what follows a handler in the route of a request.
func routeOf(r *http.Request, next caddyhttp.Handler) *route {
	rt := &route{next: next, tls: r.TLS != nil, original: originalURL(r)}
	rt.server, _ = r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if vars, ok := r.Context().Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		rt.vars = maps.Clone(vars)
		// Who asked is no business of the origin.
		delete(rt.vars, caddyhttp.ClientIPVarKey)
		delete(rt.vars, caddyhttp.TrustedProxyVarKey)
	}
	return rt
}

// RoundTrip sends a request down the route. The answer's body streams while the
// handlers write it, so it must be closed. What a handler returns as an error
// before it has written anything is the error of the round trip.
func (rt *route) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithCancel(r.Context())
	reading, writing := io.Pipe()
	sink := &sink{header: make(http.Header), began: make(chan struct{}), body: writing, request: r}
	go func() {
		defer stop()
		sink.end(rt.serve(sink, rt.prepare(ctx, r, sink)))
	}()
	select {
	case <-sink.began:
	case <-r.Context().Done():
		stop()
		reading.CloseWithError(context.Cause(r.Context()))
		return nil, context.Cause(r.Context())
	}
	if sink.failed != nil {
		return nil, sink.failed
	}
	resp := sink.response()
	resp.Body = &routeBody{reading, stop}
	return resp, nil
}

// prepare makes a request of the round trip into one that Caddy's handlers can serve.
func (rt *route) prepare(ctx context.Context, r *http.Request, w http.ResponseWriter) *http.Request {
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if in.RemoteAddr == "" {
		in.RemoteAddr = "127.0.0.1:0" // this process itself asks
	}
	if in.Proto == "" {
		in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	}
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	if rt.tls && in.TLS == nil {
		in.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: in.URL.Hostname()}
	}
	// A server's request has the path alone, and before rewrites it had another one.
	target := &url.URL{Path: in.URL.Path, RawPath: in.URL.RawPath, RawQuery: in.URL.RawQuery, ForceQuery: in.URL.ForceQuery}
	if in.URL.Opaque != "" {
		if u, err := url.ParseRequestURI(in.URL.Opaque); err == nil {
			target.Path, target.RawPath = u.Path, u.RawPath
		}
	}
	in.URL = target
	if rt.original != nil {
		in.URL = rt.original
	}
	in.RequestURI = in.URL.RequestURI()
	in = caddyhttp.PrepareRequest(in, caddy.NewReplacer(), w, rt.server)
	in.URL = target
	if vars, ok := in.Context().Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		maps.Copy(vars, rt.vars)
	}
	return in
}

// serve runs the handlers. A handler that aborts by a panic, as a reverse proxy
// does when its backend breaks off, takes nothing but its answer with it.
func (rt *route) serve(w http.ResponseWriter, r *http.Request) (err error) {
	defer func() {
		if p := recover(); p == http.ErrAbortHandler {
			err = io.ErrUnexpectedEOF
		} else if p != nil {
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	return rt.next.ServeHTTP(w, r)
}

// sink receives what handlers write, with a header of its own.
type sink struct {
	request *http.Request
	header  http.Header
	body    *io.PipeWriter
	once    sync.Once
	began   chan struct{} // closed when status and header are there, or failed is

	status  int
	sent    http.Header // the header as it was when the answer began
	written int64
	failed  error
}

func (s *sink) Header() http.Header { return s.header }

func (s *sink) WriteHeader(status int) {
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		if trace := httptrace.ContextClientTrace(s.request.Context()); trace != nil && trace.Got1xxResponse != nil {
			_ = trace.Got1xxResponse(status, textproto.MIMEHeader(s.header.Clone()))
		}
		return
	}
	s.once.Do(func() {
		s.status, s.sent = status, s.header.Clone()
		close(s.began)
	})
}

func (s *sink) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	n, err := s.body.Write(p)
	s.written += int64(n)
	return n, err
}

// Flush implements [http.Flusher]: what is written is on its way already.
func (s *sink) Flush() { s.WriteHeader(http.StatusOK) }

// end ends the answer with what the handlers returned.
func (s *sink) end(err error) {
	if err != nil {
		s.once.Do(func() {
			s.failed = err
			close(s.began)
		})
		s.body.CloseWithError(err)
		return
	}
	s.WriteHeader(http.StatusOK)
	// As a server would notice: a body that is shorter than it was said to be has
	// broken off.
	if length := contentLength(s.sent); length > s.written && !s.bodyless() {
		s.body.CloseWithError(io.ErrUnexpectedEOF)
		return
	}
	s.body.Close()
}

func (s *sink) bodyless() bool {
	return s.request.Method == http.MethodHead || s.status == http.StatusNotModified || s.status == http.StatusNoContent
}

func (s *sink) response() *http.Response {
	return &http.Response{
		Status: strconv.Itoa(s.status) + " " + http.StatusText(s.status), StatusCode: s.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: s.sent, ContentLength: contentLength(s.sent), Request: s.request,
	}
}

// contentLength is what a header says of the body's length; -1: nothing.
func contentLength(h http.Header) int64 {
	n, err := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	if err != nil || n < 0 {
		return -1
	}
	return n
}

// routeBody ends the handlers when it is closed before its end.
type routeBody struct {
	*io.PipeReader
	stop context.CancelFunc
}

func (b *routeBody) Close() error {
	b.stop()
	return b.PipeReader.CloseWithError(errBodyClosed)
}

var errBodyClosed = errors.New("nobody reads the rest of the answer")
