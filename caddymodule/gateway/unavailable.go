// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// redirect answers for a feed that redirects to a feed with polls of its own. A reader by URL
// is redirected to that feed at the gateway, with the same token; access is checked when it
// follows. A configured path has no such address.
func (g *Gateway) redirect(w http.ResponseWriter, r *http.Request, req request, u *cache.Unavailable) error {
	if req.configured != "" {
		return &poller.Refusal{
			Status: http.StatusServiceUnavailable, RetryAfter: u.RetryAfter,
			Reason: "the feed redirects to another feed of this gateway: write the URL of that one",
		}
	}
	location := basePath(r)
	if req.by.hasToken {
		location += "/~" + url.PathEscape(req.by.token)
	}
	h := w.Header()
	h.Set("Location", location+"/"+u.RedirectTo)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusFound)
	return nil
}

// servePending answers for a feed whose first poll waits for other polls of its host: with an
// empty feed that may not be stored. After an import of a hundred subscriptions of one host,
// readers would show an error for each of them, many until the next day.
func (g *Gateway) servePending(w http.ResponseWriter, r *http.Request, req request, u *cache.Unavailable) error {
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
