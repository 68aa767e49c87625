// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/http"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// Result is the result of a reader's request, as in metrics and logs.
type Result string

const (
	ResultHit         Result = "hit"          // the whole feed, from the cache
	ResultNotModified Result = "not_modified" // a 304, also after a poll
	ResultStale       Result = "stale"        // the whole feed, after a poll that was due
	ResultMiss        Result = "miss"         // the whole feed, after its first poll
	ResultRefused     Result = "refused"      // a 4xx: not a feed URL, not allowed, no such path, a shield's defend
	ResultUnavailable Result = "unavailable"  // a 410 or 5xx, because no version is stored, or the reader left before the answer
	ResultPassed      Result = "passed"       // a shield has passed the request on to the site
	ResultMoved       Result = "moved"        // a redirect to another feed
	ResultQueued      Result = "queued"       // an empty feed, because the first poll waits for its turn
)

var results = []Result{
	ResultHit, ResultNotModified, ResultStale, ResultMiss, ResultRefused, ResultUnavailable, ResultPassed, ResultMoved, ResultQueued,
}

// Requests counts the requests of one kind of handler.
type Requests struct {
	results map[Result]prometheus.Counter
	rules   map[string]prometheus.Counter // of refused requests
	bytes   prometheus.Counter
	refused *refusedReaders // for events; not a function, for which each request would take memory
	shield  bool            // the handler is a shield
}

func (m *metrics) requestsOf(handler string, rules ...string) *Requests {
	q := &Requests{results: make(map[Result]prometheus.Counter), rules: make(map[string]prometheus.Counter), bytes: m.servedBytes, shield: handler == "shield"}
	for _, r := range results {
		q.results[r] = m.requests.WithLabelValues(handler, string(r), "")
	}
	for _, rule := range rules {
		q.rules[rule] = m.requests.WithLabelValues(handler, string(ResultRefused), rule)
	}
	return q
}

// Sent counts and reports a request that was answered with a feed, given by its key or URL.
func (q *Requests) Sent(r *door.Request, feed string, sent cache.Sent) {
	result := ResultStale
	switch {
	case sent.Status == http.StatusNotModified:
		result = ResultNotModified
	case sent.Forward == "":
		result = ResultHit
	case sent.Forward == "miss":
		result = ResultMiss
	}
	if sent.Bytes > 0 {
		q.bytes.Add(float64(sent.Bytes))
	}
	q.Report(r, result, feed, "")
}

// Refused counts and reports a request that was answered with an error.
func (q *Requests) Refused(r *door.Request, feed string, refusal *door.Refusal) {
	result := ResultRefused
	if status := refusal.Status; status == http.StatusGone || status == door.StatusClientClosed || status >= 500 {
		result = ResultUnavailable
	}
	if counter := q.rules[refusal.Rule]; counter != nil {
		counter.Inc()
		q.refused.queue(r, feed, refusal, q.shield)
	} else {
		q.results[result].Inc()
	}
	report(r, result, feed, refusal.Reason)
}

// outcome is the result of a request, for the operator.
type outcome struct {
	result Result
	feed   string // key or URL
	reason string // of a refusal
}

// Report counts a request, and records its result in the placeholders
//
//	{http.pollard.status}  hit, not_modified, stale, miss, queued, refused, unavailable, moved or passed
//	{http.pollard.feed}    the feed's URL without credentials; empty if there is none
//	{http.pollard.reason}  why a request was refused, or has to wait
//
// and in the fields pollard_status, pollard_feed and pollard_reason of the access log.
func (q *Requests) Report(r *door.Request, result Result, feed, reason string) {
	q.results[result].Inc()
	report(r, result, feed, reason)
}

func report(r *door.Request, result Result, feed, reason string) {
	if repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer); ok {
		// A function in place of a method value: it holds the outcome, and takes memory once.
		repl.Map(func(key string) (any, bool) { return outcome{result, feed, reason}.placeholder(key) })
	}
	if r.Server == nil || r.Server.Logs == nil {
		return // the server has no access log
	}
	if extra, ok := r.Context().Value(caddyhttp.ExtraLogFieldsCtxKey).(*caddyhttp.ExtraLogFields); ok {
		for _, field := range (outcome{result, feed, reason}).fields() {
			extra.Set(field)
		}
	}
}

// Reported returns the fields that [Requests.Report] adds to the access log.
func Reported(r *http.Request) (fields []zap.Field) {
	repl, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return nil
	}
	for _, name := range reported {
		if text, _ := repl.GetString(placeholderPrefix + name); text != "" {
			fields = append(fields, zap.String(fieldPrefix+name, text))
		}
	}
	return fields
}

// These are the names in placeholders and in the access log.
const (
	placeholderPrefix = "http.pollard."
	fieldPrefix       = "pollard_"
)

var reported = []string{"status", "feed", "reason"}

func (o outcome) placeholder(key string) (any, bool) {
	name, ok := strings.CutPrefix(key, placeholderPrefix)
	if !ok || !slices.Contains(reported, name) {
		return nil, false
	}
	return o.text(name), true
}

func (o outcome) fields() (fields []zap.Field) {
	for _, name := range reported {
		if text := o.text(name); text != "" {
			fields = append(fields, zap.String(fieldPrefix+name, text))
		}
	}
	return fields
}

// text returns what is reported by a name, or "".
func (o outcome) text(name string) string {
	switch {
	case name == "status":
		return string(o.result)
	case name == "reason":
		return feedurl.Message(o.reason)
	case o.feed == "":
		return ""
	}
	return feedurl.Redact(ReadersURL(o.feed))
}
