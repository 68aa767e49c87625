// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// servePending answers for a feed whose first poll waits for other polls of its host: with an
// empty feed that may not be stored. After an import of a hundred subscriptions of one host,
// readers would show an error for each of them, many until the next day.
func (g *Gateway) servePending(w http.ResponseWriter, r *door.Request, req request, u *cache.Unavailable) error {
	shown := html.EscapeString(feedurl.Redact(req.feed())) // readers keep the title, so it must not contain a token
	body := fmt.Sprintf(`<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0"><channel><title>%s</title><link>%s</link><description>%s</description></channel></rss>`, shown, shown, html.EscapeString(u.Reason))
	h := w.Header()
	h.Set("Content-Type", "application/rss+xml; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Cache-Status", "Pollard; fwd=miss; detail=host-slot")
	h.Set("Retry-After", strconv.FormatInt(int64(max(u.RetryAfter, time.Second)/time.Second), 10))
	w.WriteHeader(http.StatusOK)
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, body) // the reader may have left
	}
	g.requests.Report(r, poller.ResultQueued, req.feed(), u.Reason)
	return nil
}
