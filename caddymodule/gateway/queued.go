// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/xml"
	"net/http"
	"strconv"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// queued answers for a feed whose first poll waits for its turn behind others of its
// host: with an empty feed, which nobody may store. When somebody imports a hundred
// subscriptions of one host nothing has failed, and readers show each error in red,
// many of them until the next day.
func (g *Gateway) queued(w http.ResponseWriter, r *http.Request, a asks, u *cache.Unavailable) error {
	type channel struct {
		Title       string `xml:"title"`
		Link        string `xml:"link"`
		Description string `xml:"description"`
	}
	url := feedurl.Redact(a.feed()) // readers keep a title, so there is no token in it
	body, err := xml.Marshal(struct {
		XMLName xml.Name `xml:"rss"`
		Version string   `xml:"version,attr"`
		Channel channel  `xml:"channel"`
	}{Version: "2.0", Channel: channel{url, url, u.Reason}})
	if err != nil {
		return err
	}
	body = append([]byte(xml.Header), body...)
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
		_, _ = w.Write(body) // the reader may have left
	}
	// It counts as little as an error does: the reader has not been served.
	g.engine.GatewayRequests().Count(poller.ResultQueued, 0)
	poller.Report(r, poller.ResultQueued, a.feed(), u.Reason)
	return nil
}
