// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package door

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"golang.org/x/net/publicsuffix"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// forwardedHost returns the host in X-Forwarded-Host, or "". Of a list the last element counts, which the
// nearest proxy has added. What is not a host is ignored.
func forwardedHost(h http.Header) string {
	lines := h["X-Forwarded-Host"]
	if len(lines) == 0 {
		return ""
	}
	last := lines[len(lines)-1]
	last = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
	u, err := url.Parse("http://" + last)
	if err != nil || u.Host != last {
		return ""
	}
	if _, err := feedurl.ParseHost(u.Hostname()); err != nil {
		return ""
	}
	return last
}

// SiteAddress returns the scheme and the host under which people know the site of a request.
func (r *Request) SiteAddress() string {
	return r.Scheme + "://" + cmp.Or(r.Forwarded, r.Host)
}

// OwnOrigin reports whether an Origin (RFC 6454 section 7) is that of the site of a request: its host is
// one of the two names, and its port that of the name, if that has one. Many proxies leave the port out
// of the Host that they send.
func (r *Request) OwnOrigin(origin string) bool {
	from, err := url.Parse(origin)
	if err != nil || from.Host == "" { // "null" for one: that of a sandbox
		return false
	}
	return isOrigin(from, r.Host) || r.Forwarded != "" && isOrigin(from, r.Forwarded)
}

func isOrigin(from *url.URL, name string) bool {
	if !strings.EqualFold(hostName(from.Host), hostName(name)) {
		return false
	}
	_, port, err := net.SplitHostPort(name)
	return err != nil || port == cmp.Or(from.Port(), map[string]string{"http": "80", "https": "443"}[from.Scheme])
}

// SiteToWrite returns the site address that the Caddyfile needs before clients are admitted by their
// address alone under the names of a request, or "" if they are.
//
// A page of evil.example may have its name resolve to this machine (DNS rebinding). Its scripts
// then run in a browser with a private address. They cannot send another Host than theirs, and can
// send any X-Forwarded-Host, so both must be names that no stranger can own. A user name and
// password replace this rule as a token does: the browser has them for another name only.
func (r *Request) SiteToWrite() string {
	for _, host := range [...]string{r.Host, r.Forwarded} {
		if ownHost(host) || r.hasSite(host) || r.User() != "" {
			continue
		}
		return r.addressAt(hostName(host))
	}
	return ""
}

// addressAt returns the site address of a name at the listener of a request. Behind a proxy, neither
// its scheme nor its port are those that people write: with them, Caddy would listen elsewhere.
func (r *Request) addressAt(name string) string {
	scheme, usual := "http", "80"
	if r.TLS != nil {
		scheme, usual = "https", "443"
	}
	if port := r.listenPort(); port != "" && port != usual {
		name = net.JoinHostPort(name, port)
	}
	return scheme + "://" + name
}

// listenPort returns the port on which a request came, or "". By the PROXY protocol, the address of a
// connection is the proxy's.
func (r *Request) listenPort() string {
	if r.Server != nil && len(r.Server.Listen) > 0 {
		if at, err := caddy.ParseNetworkAddress(r.Server.Listen[0]); err == nil && at.StartPort > 0 {
			return strconv.FormatUint(uint64(at.StartPort), 10)
		}
	}
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if _, port, err := net.SplitHostPort(local.String()); err == nil {
			return port
		}
	}
	return ""
}

// ownHost reports whether no stranger can own the name in a Host field, as far as the name shows
// it: an address, a name that the public DNS does not have, or none (HTTP/1.0).
func ownHost(host string) bool {
	name := hostName(host)
	if name == "" {
		return true
	}
	if _, err := netip.ParseAddr(name); err == nil {
		return true // an address, with or without a zone
	}
	name, err := feedurl.ParseHost(name)
	if err != nil {
		return false
	}
	if _, err := netip.ParseAddr(name); err == nil || !strings.Contains(name, ".") {
		return true // an address in another spelling, or a single label
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
	if strings.Contains(host, ":") {
		if name, _, err := net.SplitHostPort(host); err == nil {
			host = name
		}
	}
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"), ".")
}

// hasSite reports whether a host matcher of the server has the name in a Host field.
func (r *Request) hasSite(host string) bool {
	if r.Server == nil {
		return false
	}
	named := *r.Request
	named.Host = hostName(host)
	return namesHost(r.Server.Routes, &named)
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
