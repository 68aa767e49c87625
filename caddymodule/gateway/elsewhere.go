// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/caddymodule/poller"
)

// elsewhere answers for a feed that redirects to one with polls of its own. A reader
// who has asked by URL is sent there, by URL and with the same token; whether it may
// have that one is judged when it asks. At a path of the configuration there is no
// such place to send it to.
func (g *Gateway) elsewhere(w http.ResponseWriter, r *http.Request, u *cache.Unavailable) error {
	if _, configured := g.places[r.URL.Path]; configured {
		return &poller.Refusal{
			Status: http.StatusServiceUnavailable, RetryAfter: u.RetryAfter,
			Reason: "the feed redirects to another feed of this gateway: write the URL of that one",
		}
	}
	by, _ := readByURL(r.URL, poller.OriginalURL(r))
	location := basePath(r)
	if by.signed {
		location += "/~" + url.PathEscape(by.secret)
	}
	h := w.Header()
	h.Set("Location", location+"/"+u.Elsewhere)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusFound)
	g.engine.GatewayRequests().Count(poller.ResultMoved, 0)
	return nil
}

// basePath is where the gateway begins: what handlers before it, such as handle_path,
// have taken off the path.
func basePath(r *http.Request) string {
	original := poller.OriginalURL(r)
	if original == nil {
		return ""
	}
	base, _, found := cutBase(r.URL.EscapedPath(), original.EscapedPath())
	if !found && r.URL.Path == "/" && r.URL.RawQuery == original.RawQuery {
		// handle_path /feeds* has left nothing of /feeds. A rewrite to /?url= is told by its query.
		base = original.EscapedPath()
	}
	// As those handlers have understood it: what begins with two slashes names a host.
	return strings.TrimSuffix(caddyhttp.CleanPath(base+"/", true), "/")
}
