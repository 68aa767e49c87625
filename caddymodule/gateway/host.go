// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/feedpollard/pollard/caddymodule/poller"
)

// ofOtherSite reports whether a page of another site may have sent a request without the person
// in front of it: as an image, a frame, a script's request, or a prefetch. Such a request adds
// no feed, and does not count as asking for one.
//
// Browsers send Sec-Fetch fields (W3C Fetch Metadata) over TLS and to localhost only. Elsewhere
// Referer and Origin have to do, and a page can hide its Referer.
func ofOtherSite(r *http.Request) bool {
	h := r.Header
	if len(h["Sec-Purpose"]) > 0 { // speculation rules: Sec-Fetch-Site may be none, and the Dest document
		return true
	}
	if site := h.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		// Browsers add Origin to each request of this kind (Fetch, "append a request Origin header"). One
		// without it comes from a reader made with Electron, whose window has no site.
		window := site == "cross-site" && h.Get("Sec-Fetch-Mode") == "cors" && h.Get("Sec-Fetch-Dest") == "empty" && len(h["Origin"]) == 0
		return h.Get("Sec-Fetch-Dest") != "document" && !window
	}
	if strings.Contains(strings.ToLower(strings.Join(h["Accept"], ",")), "text/html") {
		return false // a link that a person has followed
	}
	for _, address := range []string{h.Get("Referer"), h.Get("Origin")} {
		if u, err := url.Parse(address); address != "" && (err != nil || !isHost(r, u.Host)) { // the Origin may be null
			return true
		}
	}
	return false
}

// isHost reports whether a host, with or without its port, is one of the names of a request.
func isHost(r *http.Request, host string) bool {
	sent, forwarded := poller.Hosts(r)
	name := poller.HostName(host)
	return strings.EqualFold(name, poller.HostName(sent)) || forwarded != "" && strings.EqualFold(name, poller.HostName(forwarded))
}
