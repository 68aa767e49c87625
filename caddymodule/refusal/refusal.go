// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package refusal holds the answers that are not the feed.
package refusal

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/feedurl"
)

// Refusal is an answer that is not the feed: one line of text for people.
type Refusal struct {
	Status     int
	Reason     string
	RetryAfter time.Duration // when to come back; 0: not told
}

func (e *Refusal) Error() string { return e.Reason }

// Of makes an answer of an error on the way to a feed.
func Of(err error) *Refusal {
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

// Write sends the refusal. Nobody may keep it: the next answer may be the feed.
func (e *Refusal) Write(w http.ResponseWriter, r *http.Request) {
	body := OneLine(e.Reason) + "\n"
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((e.RetryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(e.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body)) // whoever has left misses nothing
	}
}

// OneLine keeps a text, which may hold words of an origin, to one line of bounded length.
func OneLine(text string) string {
	const most = 500
	line := make([]rune, 0, len(text))
	for _, c := range text {
		if c < ' ' || c == 0x7f {
			c = ' '
		}
		if line = append(line, c); len(line) == most {
			break
		}
	}
	return string(line)
}
