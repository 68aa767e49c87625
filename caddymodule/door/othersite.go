// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// OfOtherSite reports whether a page of another site has sent a request without the person in front of
// it: as an image, a frame, a script's request, or a prefetch. Browsers send Sec-Fetch fields (W3C Fetch
// Metadata) over TLS and to localhost, and Sec-Purpose and Origin everywhere.
func (r *Request) OfOtherSite() bool {
	h := r.Header
	if len(h["Sec-Purpose"]) > 0 { // speculation rules: Sec-Fetch-Site may be none, and the Dest document
		return true
	}
	origin := h["Origin"]
	if len(origin) > 0 && !r.OwnOrigin(origin[0]) {
		return true
	}
	if site := h["Sec-Fetch-Site"]; len(site) == 0 || site[0] != "cross-site" && site[0] != "same-site" {
		return false
	}
	// Browsers add Origin to each cors request to another origin (Fetch, "append a request Origin
	// header"). One without it comes from a reader made with Electron, whose window has no site.
	reader := h.Get("Sec-Fetch-Mode") == "cors" && h.Get("Sec-Fetch-Dest") == "empty" && len(origin) == 0
	return h.Get("Sec-Fetch-Dest") != "document" && !reader
}

// MayBeOfOtherSite reports whether a request may be one of those of [Request.OfOtherSite] although only its
// Referer tells: then it adds no feed, and does not count as asking for one. A page can hide its Referer.
// SimplePie sends the address of the feed itself, whose host a proxy may have replaced.
func (r *Request) MayBeOfOtherSite() bool {
	referer := r.Header["Referer"]
	if len(referer) == 0 || referer[0] == "" || strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "text/html") { // a link that a person has followed
		return r.OfOtherSite()
	}
	from, err := url.Parse(referer[0])
	return err != nil || !r.isAt(from.Host) && !r.isFor(from) || r.OfOtherSite()
}

// isFor reports whether an address has the path and the query of a request. Some proxies merge slashes.
func (r *Request) isFor(address *url.URL) bool {
	return caddyhttp.CleanPath(address.Path, true) == caddyhttp.CleanPath(r.Sent.Path, true) && address.RawQuery == r.Sent.RawQuery
}

// isAt reports whether a host, with or without its port, is one of the names of a request.
func (r *Request) isAt(host string) bool {
	name := hostName(host)
	return strings.EqualFold(name, hostName(r.Host)) || r.Forwarded != "" && strings.EqualFold(name, hostName(r.Forwarded))
}
