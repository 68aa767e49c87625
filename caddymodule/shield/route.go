// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

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
	"strings"
	"sync"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/httpcache"
)

// route is the rest of a Caddy route, as an origin. It outlives the request that
// showed the way to it, of which it keeps nothing but what the operator's own
// handlers have made of it.
type route struct {
	next   caddyhttp.Handler
	server *caddyhttp.Server
	local  any // where the server has been reached
	https  bool
	before *position
	// poll says that the requests are polls, which the handlers before have not seen.
	poll bool
	// vars are what handlers before have set, such as the root of a file server.
	vars map[string]any
	// captures has what matchers before have found in the request's path.
	captures *caddy.Replacer
	// groups are the groups of routes of which one has been chosen already.
	groups map[string]struct{}
	// target is the URL after rewrites, and original the one before, as FastCGI scripts
	// are told it. They have neither scheme nor host.
	target, original *url.URL
}

// groupsKey is where Caddy keeps the groups in a request's context.
const groupsKey = caddy.CtxKey("route_group")

// routeOf is what follows a handler, which stands in a position, in the route of a request.
func routeOf(r *http.Request, next caddyhttp.Handler, before *position) *route {
	ctx := r.Context()
	rt := &route{next: next, local: ctx.Value(http.LocalAddrContextKey), https: scheme(r) == "https", before: before}
	rt.target, rt.original = targetOf(r.URL), targetOf(r.URL)
	if original := poller.OriginalURL(r); original != nil {
		rt.original = targetOf(original)
	}
	rt.server, _ = ctx.Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if groups, ok := ctx.Value(groupsKey).(map[string]struct{}); ok {
		rt.groups = maps.Clone(groups)
	}
	if vars, ok := ctx.Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		rt.vars = maps.Clone(vars)
		// Who asked, and when, is no business of the origin.
		for _, name := range []string{caddyhttp.ClientIPVarKey, caddyhttp.TrustedProxyVarKey, "start_time", "uuid"} {
			delete(rt.vars, name)
		}
	}
	if repl, ok := ctx.Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		rt.captures = repl.WithoutFile() // a copy: handlers may add to the original meanwhile
	}
	return rt
}

// targetOf is a URL without scheme and host, as a server's requests have it.
func targetOf(u *url.URL) *url.URL {
	return &url.URL{Path: u.Path, RawPath: u.RawPath, RawQuery: u.RawQuery, ForceQuery: u.ForceQuery}
}

// RoundTrip sends a request down the route. The answer's body streams while the
// handlers write it, so it must be closed. What a handler returns as an error
// before it has written anything is the error of the round trip.
func (rt *route) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, stop := context.WithCancel(untraced{r.Context()})
	reading, writing := io.Pipe()
	sink := &sink{header: make(http.Header), began: make(chan struct{}), body: writing, request: r}
	go func() {
		defer stop()
		in, err := rt.prepare(ctx, r, sink)
		if err == nil {
			err = rt.serve(sink, in)
		}
		sink.end(err)
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
	// Handlers need not notice that time is up.
	context.AfterFunc(ctx, func() { writing.CloseWithError(context.Cause(ctx)) })
	resp.Body = &routeBody{reading, stop}
	return resp, nil
}

// nobody is the address of a poll's reader: there is none. It is in no range that an
// operator would trust, so what only neighbours may read is not stored for all.
const nobody = "0.0.0.0:0"

// prepare makes a request of the round trip into one that Caddy's handlers can serve.
func (rt *route) prepare(ctx context.Context, r *http.Request, w http.ResponseWriter) (*http.Request, error) {
	if rt.local != nil {
		ctx = context.WithValue(ctx, http.LocalAddrContextKey, rt.local)
	}
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	if in.RemoteAddr == "" {
		in.RemoteAddr = nobody
	}
	if in.Host == "" {
		in.Host = in.URL.Host
	}
	if rt.https && in.TLS == nil {
		in.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true, ServerName: r.URL.Hostname()}
	}
	// Handlers change URLs in place.
	original := *rt.original
	in.URL, in.RequestURI = &original, original.RequestURI()
	in = caddyhttp.PrepareRequest(in, caddy.NewReplacer(), w, rt.server)
	target := *rt.target
	in.URL = &target
	if vars, ok := in.Context().Value(caddyhttp.VarsCtxKey).(map[string]any); ok {
		maps.Copy(vars, rt.vars)
	}
	if groups, ok := in.Context().Value(groupsKey).(map[string]struct{}); ok {
		maps.Copy(groups, rt.groups)
	}
	in.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer).Map(rt.captured)
	return in, rt.before.prepare(w, in, rt.poll)
}

// captured gives the placeholders that matchers before have set. Of the others it
// gives none: they are of the request that showed the way.
func (rt *route) captured(key string) (any, bool) {
	if rt.captures == nil || !strings.HasPrefix(key, "http.regexp.") && !strings.HasPrefix(key, "http.matchers.file.") {
		return nil, false
	}
	return rt.captures.Get(key)
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
	sent    http.Header // the header as it was when the answer began: the receiver's
	length  int64       // of the body, as that said; -1: it did not
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
		s.status, s.sent, s.length = status, s.header.Clone(), contentLength(s.header)
		close(s.began)
	})
}

func (s *sink) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	if s.bodyless() {
		return len(p), nil // as a server does
	}
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
	if s.length > s.written && !s.bodyless() {
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
		Header: s.sent, ContentLength: s.length, Request: s.request,
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

// untraced hides the trace of whoever made the round trip from the handlers: a
// reverse proxy that makes a request of its own in this context would tell it of
// interim answers, which it hears of from what the proxy writes.
type untraced struct{ context.Context }

func (u untraced) Value(key any) any {
	v := u.Context.Value(key)
	if _, ok := v.(*httptrace.ClientTrace); ok {
		return nil
	}
	return v
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

// shared is a route as the origin of a shared cache.
type shared struct{ *route }

// RoundTrip tells errors that stand for an answer from those that stand for none.
func (s *shared) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := s.route.RoundTrip(r)
	if known, ok := errors.AsType[caddyhttp.HandlerError](err); ok && known.StatusCode != 0 {
		return nil, &httpcache.OriginError{Status: known.StatusCode, Err: err}
	}
	return resp, err
}
