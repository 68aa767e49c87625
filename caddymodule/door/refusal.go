// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// StatusClientClosed is what Caddy's own handlers log if the client has left before the answer.
const StatusClientClosed = 499

// RuleAccess is the rule of all that a gateway forbids.
const RuleAccess = "access"

// Refusal is a response without the feed: one line of text for people.
type Refusal struct {
	Status     int
	Reason     string
	RetryAfter time.Duration // 0: the response has no Retry-After
	// Rule is the line of a shield's defend that refuses the request, or [RuleAccess]; empty: none does.
	Rule string
}

func (e *Refusal) Error() string { return e.Reason }

// RefusalOf returns the response for an error of serving a feed.
func RefusalOf(err error) *Refusal {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r
	}
	if u, ok := errors.AsType[*cache.Unavailable](err); ok {
		return &Refusal{Status: u.Status, Reason: u.Reason, RetryAfter: u.RetryAfter}
	}
	if errors.Is(err, feedurl.ErrInvalid) {
		return &Refusal{Status: http.StatusBadRequest, Reason: err.Error()}
	}
	return &Refusal{Status: http.StatusInternalServerError, Reason: "the gateway failed; its log says more"}
}

// Answer returns the refusal as an error if the site has handle_errors. Otherwise it
// writes it as a line of text.
func (e *Refusal) Answer(w http.ResponseWriter, r *Request) error {
	if !e.Handled(r) {
		e.Write(w, r.Request)
		return nil
	}
	e.Header(w.Header())
	return caddyhttp.Error(e.Status, e)
}

// Handled reports whether the server of a request has a route for the error.
func (e *Refusal) Handled(r *Request) bool {
	if r.Server == nil || r.Server.Errors == nil {
		return false
	}
	failed := r.Server.Errors.WithError(r.Request, caddyhttp.Error(e.Status, e))
	for _, route := range r.Server.Errors.Routes {
		if matches, err := route.MatcherSets.AnyMatchWithError(failed); err != nil || matches {
			return true
		}
	}
	return false
}

// Header sets the header fields of a refusal. It must not be cached: the next response
// may be the feed.
func (e *Refusal) Header(h http.Header) {
	h.Set("Cache-Control", "no-store")
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
}

// Write writes the refusal as a line of text.
func (e *Refusal) Write(w http.ResponseWriter, r *http.Request) {
	body := feedurl.Message(e.Reason) + "\n"
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	e.Header(h)
	w.WriteHeader(e.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body)) // the client may be gone
	}
}
