// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/httpcache"
)

// serveShared answers as a shared HTTP cache does.
func (s *Shield) serveShared(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) (err error) {
	key, ok := s.keyOf(r)
	if !ok || r.Method == http.MethodConnect {
		return s.pass(w, r, next)
	}
	if _, err := s.engine.Opened(r.Context()); err != nil { // before that its budget is not known
		return s.pass(w, r, next)
	}
	responses, err := s.engine.SharedCache()
	if err != nil {
		return s.pass(w, r, next)
	}
	u, err := url.Parse(key.URL())
	if err != nil {
		return s.pass(w, r, next)
	}
	m := &poller.Meter{ResponseWriter: w}
	// A site that breaks off makes the cache panic, as net/http demands.
	defer func() { poller.Report(r, s.engine.ShieldRequests().CountShared(m, err), key.String(), "") }()
	err = responses.Serve(m, r, httpcache.Target{
		Key: key.String(), URL: u,
		KeyOf:   func(other *url.URL) string { return s.sharedKey(key, other) },
		Request: func() *http.Request { return httpcache.Anonymous(r, u) },
		Shared:  sharedOrigin{s.origin, key},
		Own:     func(w http.ResponseWriter, r *http.Request) error { return s.origin.own(w, r, next) },
	})
	if errors.Is(err, errUnanswered) {
		return s.origin.own(m, r, next) // what follows the shield answers
	}
	return err
}

// sharedKey is the key of another URL of the same site.
func (s *Shield) sharedKey(key poller.ShieldKey, other *url.URL) string {
	path := escapedPath(other)
	if key.Target != "" {
		// What was cut off the one path, as handle_path does, is cut off the other.
		prefix, cut := strings.CutSuffix(key.Path, key.Target)
		target, below := strings.CutPrefix(path, prefix)
		if !cut || !below || !strings.HasPrefix(target, "/") {
			return ""
		}
		key.Target = target
	}
	key.Path, key.Query = path, s.Query.kept(other.RawQuery)
	return key.String()
}

// sharedOrigin is the origin block as a shared cache asks it for what a key stands for.
type sharedOrigin struct {
	*origin
	key poller.ShieldKey
}

// RoundTrip tells errors that stand for an answer from those that stand for none.
func (o sharedOrigin) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := o.ask(r, o.key)
	if known, ok := errors.AsType[caddyhttp.HandlerError](err); ok && known.StatusCode != 0 {
		return nil, &httpcache.OriginError{Status: known.StatusCode, Err: err}
	}
	return resp, err
}

// Interface guard.
var _ http.RoundTripper = sharedOrigin{}
