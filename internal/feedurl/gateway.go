// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// Gateway converts the URLs of feeds to their addresses at a gateway, and back.
type Gateway struct {
	root   string // canonical, with a slash at its end
	prefix string // before a feed's URL: the root, and /~<secret>/ if there is a secret
}

// ParseGateway reads the URL of a gateway: the site's, or the path in it below which
// the gateway is. If there is a secret, addresses contain it, as in /~<secret>/https://...
func ParseGateway(base, secret string) (Gateway, error) {
	u, err := Parse(base)
	if err != nil {
		return Gateway{}, fmt.Errorf("gateway %q: %w, as in http://feeds.home.arpa", Redact(base), err)
	}
	if u.Query() != "" {
		return Gateway{}, fmt.Errorf("gateway %q: %w: the address of a gateway has no query", Redact(base), ErrInvalid)
	}
	g := Gateway{root: strings.TrimRight(u.String(), "/") + "/"}
	g.prefix = g.root
	if secret != "" {
		g.prefix += "~" + url.PathEscape(secret) + "/"
	}
	return g, nil
}

// Address returns the address of a feed at the gateway. An address of this gateway
// is returned unchanged.
func (g Gateway) Address(feed string) (string, error) {
	if g.root == "" {
		return "", errors.New("no gateway")
	}
	if _, ok := g.cut(feed); ok {
		return feed, nil
	}
	u, err := Parse(feed)
	if err != nil {
		return "", err
	}
	if hasDotSegments(u.Path()) { // readers resolve them, RFC 3986 section 5.2.4
		return g.prefix + "?url=" + url.QueryEscape(u.String()), nil
	}
	if feed = strings.TrimSpace(feed); hasPrefixFold(feed, "https://") || hasPrefixFold(feed, "http://") {
		return g.prefix + feed, nil // as written, so that Feed gives it back
	}
	return g.prefix + u.String(), nil
}

// Feed returns the feed's URL in an address of the gateway, with any secret or none. It
// returns false for other URLs, and for the gateway's own paths.
func (g Gateway) Feed(address string) (string, bool) {
	rest, ok := g.cut(address)
	if !ok {
		return "", false
	}
	if after, secret := strings.CutPrefix(rest, "~"); secret {
		_, rest, _ = strings.Cut(after, "/")
	}
	feed := ""
	if value, parameter := strings.CutPrefix(rest, "?url="); parameter {
		value, _, _ = strings.Cut(value, "&")
		feed, _ = url.QueryUnescape(value)
	} else {
		feed = atEnd(rest)
	}
	if _, err := Parse(feed); err != nil {
		return "", false
	}
	return feed, true
}

// cut returns the part of an address after the gateway's root.
func (g Gateway) cut(address string) (rest string, ok bool) {
	address = strings.TrimSpace(address)
	if hasPrefixFold(address, g.root) {
		return address[len(g.root):], true
	}
	u, err := Parse(address) // another spelling
	if err != nil {
		return "", false
	}
	return strings.CutPrefix(u.String(), g.root)
}

// atEnd returns the URL at the end of a path: as written, or with the slashes that a client has merged.
// It does not accept host.name/path, which may be another path of the site.
func atEnd(path string) string {
	path = strings.TrimLeft(path, "/")
	scheme, after, ok := CutScheme(path)
	switch {
	case !ok:
		return ""
	case hasPrefixFold(path, scheme+"://"):
		return path
	}
	return scheme + "://" + after
}

func hasDotSegments(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case ".", "..":
			return true
		}
	}
	return false
}
