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

// redirect answers for a feed that redirects to a feed with polls of its own. A reader by URL
// is redirected to that feed at the gateway, with the same token; access is checked when it
// follows. A configured path has no such address.
func (g *Gateway) redirect(w http.ResponseWriter, r *http.Request, u *cache.Unavailable) error {
	if _, configured := g.paths[r.URL.Path]; configured {
		return &poller.Refusal{
			Status: http.StatusServiceUnavailable, RetryAfter: u.RetryAfter,
			Reason: "the feed redirects to another feed of this gateway: write the URL of that one",
		}
	}
	by, _ := parseByURL(r.URL, poller.OriginalURL(r))
	location := basePath(r)
	if by.hasToken {
		location += "/~" + url.PathEscape(by.token)
	}
	h := w.Header()
	h.Set("Location", location+"/"+u.RedirectTo)
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusFound)
	g.engine.GatewayRequests().Count(poller.ResultMoved, 0)
	return nil
}

// basePath returns the path prefix of the gateway, which handlers before it, such as
// handle_path, have removed.
func basePath(r *http.Request) string {
	original := poller.OriginalURL(r)
	if original == nil {
		return ""
	}
	base, _, found := cutBase(r.URL.EscapedPath(), original.EscapedPath())
	if !found && r.URL.Path == "/" && r.URL.RawQuery == original.RawQuery {
		// handle_path /feeds* has removed all of /feeds. A rewrite to /?url= changes the query.
		base = original.EscapedPath()
	}
	// Cleaned as those handlers do: a path that begins with two slashes names a host.
	return strings.TrimSuffix(caddyhttp.CleanPath(base+"/", true), "/")
}
