// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"hash/crc32"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/caddymodule/shieldkey"
)

// keyOf is the key of what a request asks for; empty where the shield stands in
// routes that it does not know.
func (s *Shield) keyOf(r *http.Request) string {
	server, _ := r.Context().Value(caddyhttp.ServerCtxKey).(*caddyhttp.Server)
	p := s.position.Load()
	if p == nil || p.server != server {
		p = positionOf(s, server)
		s.position.Store(p)
	}
	if !p.known {
		return ""
	}
	var room [512]byte
	key := append(room[:0], shieldkey.Prefix...)
	if p.number > 0 {
		key = strconv.AppendInt(key, int64(p.number), 10)
	}
	key = append(append(key, ':'), scheme(r)...)
	key = s.appendHost(append(key, "://"...), p, r)
	original := poller.OriginalURL(r)
	if original == nil {
		return string(appendTarget(key, r.URL))
	}
	key = appendTarget(key, original)
	if original.Path != r.URL.Path || original.RawPath != r.URL.RawPath || original.RawQuery != r.URL.RawQuery {
		key = appendTarget(append(key, shieldkey.RewriteMark...), r.URL)
	}
	return string(key)
}

// scheme is what the reader used, as far as that is known: a proxy that is trusted
// may tell.
func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	if told := r.Header["X-Forwarded-Proto"]; len(told) > 0 && strings.EqualFold(told[0], "https") {
		if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
			return "https"
		}
	}
	return "http"
}

// appendTarget appends path and query.
func appendTarget(b []byte, u *url.URL) []byte {
	path := u.EscapedPath()
	if !strings.HasPrefix(path, "/") {
		b = append(b, '/')
	}
	b = append(b, path...)
	if u.RawQuery != "" || u.ForceQuery {
		// HTTP/2 lets a space into the query.
		b = append(append(b, '?'), strings.ReplaceAll(u.RawQuery, " ", "%20")...)
	}
	return b
}

// appendHost appends the host under which feeds are kept and the site is asked: one
// that the operator has written, never just what a request says. A request that
// reaches a site without a host in its address could otherwise plant feeds under
// any name.
func (s *Shield) appendHost(b []byte, p *position, r *http.Request) []byte {
	if s.Host != "" {
		return append(b, strings.ToLower(s.Host)...)
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !p.named(r) {
		return append(b, listener(local)...)
	}
	name, port := r.Host, ""
	if i := strings.LastIndexByte(name, ':'); i >= 0 && strings.IndexByte(name[i:], ']') < 0 {
		name, port = name[:i], name[i+1:]
	}
	b = append(b, strings.ToLower(name)...)
	// A port is no part of what matchers look at. One that is neither the scheme's own
	// nor ours may be a poisoner's, or that of a box before us.
	if port == "" || r.TLS == nil && port == "80" || r.TLS != nil && port == "443" || port != portOf(local) {
		return b
	}
	return append(append(b, ':'), port...)
}

// listener is the address at which a server has been reached, as a URL has it.
func listener(local net.Addr) string {
	if local == nil {
		return "localhost"
	}
	text := local.String()
	if address, err := netip.ParseAddrPort(text); err == nil {
		return netip.AddrPortFrom(address.Addr().Unmap().WithZone(""), address.Port()).String()
	}
	// A socket of another kind has no name that a URL could hold.
	return fmt.Sprintf("socket-%08x.localhost", crc32.ChecksumIEEE([]byte(text)))
}

func portOf(local net.Addr) string {
	if local == nil {
		return ""
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return ""
	}
	return port
}

// errUnshared says that a request is for its reader alone.
var errUnshared = fmt.Errorf("the site's answer depends on who asks")

// varied is the key and the fields of the variant that a request asks for, where the
// site tells readers apart by the fields named. There are no fields where it asks for
// the plain feed: it has none of them.
func varied(key string, fields []string, h http.Header) (string, http.Header, error) {
	var text strings.Builder
	text.WriteString(key)
	sent := http.Header{}
	for _, name := range fields {
		name = http.CanonicalHeaderKey(name)
		values := h[name]
		switch name {
		case "Host", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Scheme", "X-Forwarded-Port":
			continue // the key has them, and handlers make them of it
		case "Cookie", "Authorization", "Proxy-Authorization", "X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via", "Connection",
			"Range", "If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since":
			if len(values) > 0 {
				return "", nil, errUnshared
			}
		}
		if len(values) > 0 {
			sent[name] = append([]string(nil), values...)
			text.WriteString(shieldkey.VariantMark + name + "=" + url.QueryEscape(strings.Join(values, ",")))
		}
	}
	return text.String(), sent, nil
}
