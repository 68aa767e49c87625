// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// refusal is an answer that is not the feed: one line of text for people.
type refusal struct {
	status     int
	reason     string
	retryAfter time.Duration // when to come back; 0: not told
}

func (e *refusal) Error() string { return e.reason }

// refusalOf makes an answer of an error on the way to a feed.
func refusalOf(err error) *refusal {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r
	}
	if u, ok := errors.AsType[*cache.Unavailable](err); ok {
		return &refusal{status: u.Status, reason: u.Reason, retryAfter: u.RetryAfter}
	}
	if errors.Is(err, cache.ErrNotFeedURL) {
		return &refusal{status: http.StatusBadRequest, reason: err.Error()}
	}
	return &refusal{status: http.StatusInternalServerError, reason: "the gateway failed; its log says more"}
}

// write sends the refusal. Nobody may keep it: the next answer may be the feed.
func (e *refusal) write(w http.ResponseWriter, r *http.Request) {
	body := oneLine(e.reason) + "\n"
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if e.retryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((e.retryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(e.status)
	if r.Method != http.MethodHead {
		_, _ = w.Write([]byte(body)) // whoever has left misses nothing
	}
}

// oneLine keeps a text, which may hold words of an origin, to one line of bounded length.
func oneLine(text string) string {
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
