// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/publicsuffix"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// siteToWrite returns the site address that the Caddyfile needs before the gateway admits
// clients by their address under the Host of a request, or "" if it admits them.
//
// A page of evil.example may have its name resolve to the gateway (DNS rebinding). Its scripts
// then run in a browser with a private address. They cannot send another Host than theirs, so
// the Host must be a name that no stranger can own. A user name and password replace this rule
// as a token does: the browser has them for another name only.
func (g *Gateway) siteToWrite(r *http.Request) string {
	if g.access.clients.any || ownHost(r.Host) || poller.User(r) != "" || g.hasSite(r) {
		return ""
	}
	name := hostName(r.Host)
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(local.String()); err == nil && port != "80" && port != "443" {
			name = net.JoinHostPort(name, port)
		}
	}
	return poller.Scheme(r) + "://" + name
}

// ownHost reports whether no stranger can own the name in a Host field, as far as the name shows
// it: an address, a name that the public DNS does not have, or none (HTTP/1.0).
func ownHost(host string) bool {
	name := hostName(host)
	if name == "" {
		return true
	}
	address, _, _ := strings.Cut(name, "%") // a zone
	name, err := feedurl.ParseHost(address)
	if err != nil {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") {
		return true // an address or a single label
	}
	// RFC 8375: home.arpa. Tailscale sets all records below ts.net, and none is private.
	for _, domain := range []string{"home.arpa", "ts.net"} {
		if name == domain || strings.HasSuffix(name, "."+domain) {
			return true
		}
	}
	// Anyone may register below a suffix of ICANN's section of the list. Names in its other
	// section, such as duckdns.org, lie below one of these as well.
	_, icann := publicsuffix.PublicSuffix(name[strings.LastIndexByte(name, '.')+1:])
	return !icann
}

// hostName returns the host in a Host field, without port, brackets and trailing dot.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
}

// hasSite reports whether a host matcher of the server has the name in the Host field.
func (g *Gateway) hasSite(r *http.Request) bool {
	if g.server == nil {
		return false
	}
	named := *r
	named.Host = hostName(r.Host)
	return namesHost(g.server.Routes, &named)
}

func namesHost(routes caddyhttp.RouteList, r *http.Request) bool {
	for i := range routes {
		for _, set := range routes[i].MatcherSets {
			for _, matcher := range set {
				if hosts, ok := matcher.(*caddyhttp.MatchHost); ok && hosts.Match(r) {
					return true
				}
			}
		}
		for _, handler := range routes[i].Handlers {
			if inner, ok := handler.(*caddyhttp.Subroute); ok && namesHost(inner.Routes, r) {
				return true
			}
		}
	}
	return false
}

// siteAddress returns the scheme and host that a request was sent to.
func siteAddress(r *http.Request) string {
	host := r.Host
	if name := r.Header.Get("X-Forwarded-Host"); name != "" && poller.Trusted(r) {
		host = name
	}
	return poller.Scheme(r) + "://" + host
}

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
		return h.Get("Sec-Fetch-Dest") != "document"
	}
	if strings.Contains(strings.ToLower(strings.Join(h["Accept"], ",")), "text/html") {
		return false // a link that a person has followed
	}
	return ofOtherHost(h.Get("Referer"), r.Host) || ofOtherHost(h.Get("Origin"), r.Host)
}

// ofOtherHost reports whether a Referer or Origin, if there is one, names another host.
func ofOtherHost(address, host string) bool {
	if address == "" {
		return false
	}
	u, err := url.Parse(address)
	return err != nil || !strings.EqualFold(hostName(u.Host), hostName(host)) // the Origin may be null
}
