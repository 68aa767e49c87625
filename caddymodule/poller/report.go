// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// outcome is the result of a request, for the operator.
type outcome struct {
	result Result
	feed   string // key or URL
	reason string // of a refusal
}

// Report records the result of a request in the placeholders
//
//	{http.pollard.status}  hit, not_modified, stale, miss, queued, refused, unavailable, moved or passed
//	{http.pollard.feed}    the feed's URL without credentials; empty if there is none
//	{http.pollard.reason}  why a request was refused, or has to wait
//
// and in the fields pollard_status, pollard_feed and pollard_reason of the access log.
func Report(r *http.Request, result Result, feed, reason string) {
	o := &outcome{result, feed, reason}
	caddyhttp.SetVar(r.Context(), reportedVar, o)
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		repl.Map(o.placeholder)
	}
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	if server == nil || server.Logs == nil {
		return // the server has no access log
	}
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		for _, field := range o.fields() {
			extra.Set(field)
		}
	}
}

// Reported returns the fields that [Report] adds to the access log.
func Reported(r *http.Request) []zap.Field {
	o, ok := caddyhttp.GetVar(r.Context(), reportedVar).(*outcome)
	if !ok {
		return nil
	}
	return o.fields()
}

// reportedVar is the variable of a request that holds its outcome.
const reportedVar = "pollard_outcome"

func (o *outcome) placeholder(key string) (any, bool) {
	switch key {
	case "http.pollard.status":
		return o.result.String(), true
	case "http.pollard.feed":
		return o.url(), true
	case "http.pollard.reason":
		return OneLine(o.reason), true
	}
	return nil, false
}

func (o *outcome) fields() []zap.Field {
	fields := []zap.Field{zap.Stringer("pollard_status", o.result)}
	if o.feed != "" {
		fields = append(fields, zap.String("pollard_feed", o.url()))
	}
	if o.reason != "" {
		fields = append(fields, zap.String("pollard_reason", OneLine(o.reason)))
	}
	return fields
}

func (o *outcome) url() string {
	if o.feed == "" {
		return ""
	}
	return feedurl.Redact(ReadersURL(o.feed))
}
