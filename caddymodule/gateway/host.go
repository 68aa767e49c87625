// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/poller"
)

// ofOtherSite reports whether a page of another site has sent a request without the person in front of
// it: as an image, a frame, a script's request, or a prefetch. Browsers send Sec-Fetch fields (W3C Fetch
// Metadata) over TLS and to localhost, and Sec-Purpose and Origin everywhere.
func ofOtherSite(r *http.Request) bool {
	h := r.Header
	if len(h["Sec-Purpose"]) > 0 { // speculation rules: Sec-Fetch-Site may be none, and the Dest document
		return true
	}
	if len(h["Origin"]) > 0 && !poller.OwnOrigin(r, h.Get("Origin")) {
		return true
	}
	if site := h.Get("Sec-Fetch-Site"); site != "cross-site" && site != "same-site" {
		return false
	}
	// Browsers add Origin to each cors request to another origin (Fetch, "append a request Origin
	// header"). One without it comes from a reader made with Electron, whose window has no site.
	reader := h.Get("Sec-Fetch-Mode") == "cors" && h.Get("Sec-Fetch-Dest") == "empty" && len(h["Origin"]) == 0
	return h.Get("Sec-Fetch-Dest") != "document" && !reader
}

// mayBeOfOtherSite reports whether a request may be one of those of [ofOtherSite] although only its
// Referer tells: then it adds no feed, and does not count as asking for one. A page can hide its Referer.
// SimplePie sends the address of the feed itself, whose host a proxy may have replaced.
func mayBeOfOtherSite(r *http.Request) bool {
	referer := r.Header.Get("Referer")
	if referer == "" || strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "text/html") { // a link that a person has followed
		return ofOtherSite(r)
	}
	from, err := url.Parse(referer)
	return err != nil || !isHost(r, from.Host) && !isRequested(r, from) || ofOtherSite(r)
}

// isRequested reports whether an address has the path and the query of a request. Some proxies merge slashes.
func isRequested(r *http.Request, address *url.URL) bool {
	sent := cmp.Or(poller.OriginalURL(r), r.URL)
	return caddyhttp.CleanPath(address.Path, true) == caddyhttp.CleanPath(sent.Path, true) && address.RawQuery == sent.RawQuery
}

// isHost reports whether a host, with or without its port, is one of the names of a request.
func isHost(r *http.Request, host string) bool {
	sent, forwarded := poller.Hosts(r)
	name := poller.HostName(host)
	return strings.EqualFold(name, poller.HostName(sent)) || forwarded != "" && strings.EqualFold(name, poller.HostName(forwarded))
}
