// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// tokenInURI matches all that may be a token in the URL of a request: what follows a tilde,
// wherever it stands and however it is escaped, or the path of callbacks.
var tokenInURI = regexp.MustCompile(`(?:/-/websub/|~|%(?:25)*7[Ee])[^/?]+`)

func withoutToken(uri string) string {
	return tokenInURI.ReplaceAllStringFunc(uri, func(token string) string {
		if strings.HasPrefix(token, cache.CallbackPath) {
			return cache.CallbackPath + "***"
		}
		return "~***"
	})
}

// mayHaveToken reports whether a token may be in the URL of a request, or in a URL in another field, such
// as Referer.
func (g *Gateway) mayHaveToken(r *door.Request) bool {
	return g.access.tokens != nil && (tokenInURI.MatchString(r.SentURI) || fieldHasToken(r.Header))
}

func fieldHasToken(h http.Header) bool {
	for _, values := range h {
		for _, value := range values {
			if strings.ContainsAny(value, "~%") && tokenInURI.MatchString(value) {
				return true
			}
		}
	}
	return false
}

// headerWithoutToken returns a copy of a header in which no URL of the gateway has a token: neither the
// Referer, nor what proxies add, such as X-Original-URI.
func headerWithoutToken(h http.Header) http.Header {
	h = h.Clone()
	for _, values := range h {
		for i, value := range values {
			values[i] = withoutToken(value)
		}
	}
	return h
}

// hideToken keeps the token of a request out of the access log. Caddy copies the request for its
// log before any handler sees it, so that entry is skipped, and done writes the same entry
// without the token. The response must be written to the returned writer.
func (g *Gateway) hideToken(w http.ResponseWriter, in *door.Request) (_ http.ResponseWriter, done func()) {
	r, user := in.Request, in.User()
	names := g.logNames(r)
	if skip, _ := caddyhttp.GetVar(r.Context(), caddyhttp.LogSkipVar).(bool); skip || len(names) == 0 {
		return w, func() {}
	}
	caddyhttp.SetVar(r.Context(), caddyhttp.LogSkipVar, true)
	sent, began := caddyhttp.NewResponseRecorder(w, nil, nil), time.Now()
	logged := r.Clone(r.Context())
	logged.RequestURI, logged.Header = withoutToken(in.SentURI), headerWithoutToken(r.Header)
	return sent, func() {
		credentials := g.server.Logs.ShouldLogCredentials
		fields := []zap.Field{
			zap.Object("request", caddyhttp.LoggableHTTPRequest{Request: logged, ShouldLogCredentials: credentials}),
			zap.Int("bytes_read", 0),
			zap.String("user_id", user),
			zap.Duration("duration", time.Since(began)),
			zap.Int("size", sent.Size()),
			zap.Int("status", sent.Status()),
			zap.Object("resp_headers", caddyhttp.LoggableHTTPHeader{Header: headerWithoutToken(w.Header()), ShouldLogCredentials: credentials}),
		}
		fields = append(fields, poller.Reported(r)...)
		level := zapcore.InfoLevel
		if sent.Status() >= http.StatusInternalServerError { // as Caddy does
			level = zapcore.ErrorLevel
		}
		for _, name := range names {
			g.accessLog.Named(name).Log(level, "handled request", fields...)
		}
	}
}

// logNames returns the names of the access logs for a request. The empty name is the default log.
func (g *Gateway) logNames(r *http.Request) []string {
	names := g.logNamesOfHost(r)
	chosen, ok := caddyhttp.GetVar(r.Context(), caddyhttp.AccessLoggerNameVarKey).([]any) // by the directive log_name
	if !ok || names == nil {
		return names
	}
	names = nil
	for _, name := range chosen {
		names = append(names, fmt.Sprint(name))
	}
	return names
}

func (g *Gateway) logNamesOfHost(r *http.Request) []string {
	if g.server == nil || g.server.Logs == nil {
		return nil
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	logs := g.server.Logs
	skip := logs.SkipUnmappedHosts
	for pattern := strings.ToLower(host); ; {
		if names, ok := logs.LoggerNames[pattern]; ok {
			return names
		}
		skip = skip || slices.Contains(logs.SkipHosts, pattern)
		_, parent, more := strings.Cut(strings.TrimPrefix(pattern, "*."), ".")
		if !more {
			break
		}
		pattern = "*." + parent
	}
	if skip {
		return nil
	}
	return []string{logs.DefaultLoggerName}
}
