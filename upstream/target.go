// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	"golang.org/x/net/idna"
)

// maxTarget is the longest URL that is asked for or followed to, in bytes.
const maxTarget = 8 << 10

// target is one URL as it is asked for.
type target struct {
	url    string // absolute, as written, without a fragment
	scheme string // http or https
	host   string // as the Host field has it: lower case, ASCII, with a port unless it is the scheme's own
	name   string // the host name or address alone, without a trailing dot
	port   string
	path   string // of the request target, beginning with a slash
	query  string // with its question mark; empty where there is none
	user   *url.Userinfo
}

// parseTarget takes a URL apart without touching what its origin may tell apart:
// escapes, their case, the order of parameters, empty ones, a bare question mark.
func parseTarget(raw string) (target, error) {
	raw, _, _ = strings.Cut(raw, "#")
	if len(raw) > maxTarget {
		return target{}, fmt.Errorf("URL is longer than %d bytes", maxTarget)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	scheme = strings.ToLower(scheme)
	if !ok || scheme != "http" && scheme != "https" {
		return target{}, errors.New("not an http or https URL")
	}
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	u, err := url.Parse(scheme + "://" + authority + "/")
	if err != nil || u.Hostname() == "" {
		return target{}, errors.New("URL names no valid host")
	}
	t := target{url: raw, scheme: scheme, user: u.User, port: u.Port()}
	if err := t.setHost(u.Hostname()); err != nil {
		return target{}, err
	}
	return t, t.setPath(path)
}

func (t *target) setHost(name string) error {
	name = strings.ToLower(name)
	for i := range len(name) {
		if name[i] >= 0x80 {
			// RFC 5891 section 5: what is looked up is the A-label.
			ascii, err := idna.Lookup.ToASCII(name)
			if err != nil {
				return errors.New("URL names no valid host")
			}
			name = ascii
			break
		}
	}
	t.name, t.host = strings.TrimSuffix(name, "."), name
	if t.name == "" {
		return errors.New("URL names no valid host")
	}
	if strings.Contains(name, ":") {
		t.host = "[" + name + "]"
	}
	own := map[string]string{"http": "80", "https": "443"}[t.scheme]
	if t.port == "" {
		t.port = own
	}
	if t.port != own {
		t.host = net.JoinHostPort(name, t.port)
	}
	return nil
}

// setPath takes the request target over as written, but for what cannot be in
// one: characters outside of ASCII become escapes as RFC 3987 section 3.1 has it,
// a space becomes one, control characters are refused.
func (t *target) setPath(raw string) error {
	var b strings.Builder
	if !strings.HasPrefix(raw, "/") {
		b.WriteByte('/') // RFC 9112 section 3.2.1: an empty path is sent as "/"
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c < ' ' || c == 0x7f:
			return errors.New("URL contains a control character")
		case c == ' ' || c > 0x7f:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	t.path = b.String()
	if i := strings.IndexByte(t.path, '?'); i >= 0 {
		t.path, t.query = t.path[:i], t.path[i:]
	}
	return nil
}

// address is what is dialled.
func (t target) address() string { return net.JoinHostPort(strings.TrimSuffix(t.name, "."), t.port) }

// origin is the scheme, host and port that credentials are bound to (RFC 6454).
func (t target) origin() string { return t.scheme + "://" + net.JoinHostPort(t.name, t.port) }

// requestURL is the target in the form that makes net/http send it as written.
func (t target) requestURL() *url.URL {
	u := &url.URL{Scheme: t.scheme, Host: t.host, Path: t.path, RawPath: t.path}
	if plain, err := url.PathUnescape(t.path); err == nil {
		u.Path = plain
	}
	if t.query != "" {
		u.RawQuery = t.query[1:]
		u.ForceQuery = u.RawQuery == ""
	}
	if u.RequestURI() == t.path+t.query {
		return u
	}
	// The path has something in it that net/url would escape anew. Opaque is sent as
	// it is, unless it begins with two slashes: then net/url takes it for an
	// authority, and the few characters in question must become escapes.
	if !strings.HasPrefix(t.path, "//") {
		u.Opaque = t.path
		return u
	}
	u.RawPath = escapeIllegal(t.path)
	u.Path, _ = url.PathUnescape(u.RawPath)
	return u
}

// escapeIllegal escapes what RFC 3986 section 3.3 does not allow in a path,
// lone percent signs included.
func escapeIllegal(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		lone := c == '%' && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]))
		if lone || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// key is equal for targets of which one request would be the same as the other's.
func (t target) key() string { return t.origin() + t.path + t.query }
