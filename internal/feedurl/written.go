// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"slices"
	"strings"
)

// pseudoSchemes stand before the URLs of feeds so that a click on them opens a reader. They mean
// http, unless http or https follows.
var pseudoSchemes = []string{"feed:", "pcast:", "itpc:", "podcast:"}

// CutScheme cuts the scheme of a URL off, as people and programs write it: https://host, https:/host if
// something has merged the slashes, feed://host, and pcast:https://host.
func CutScheme(raw string) (scheme, rest string, ok bool) {
	if scheme, rest, ok = cutHTTP(raw); ok {
		return scheme, rest, true
	}
	i := slices.IndexFunc(pseudoSchemes, func(pseudo string) bool { return hasPrefixFold(raw, pseudo) })
	if i < 0 {
		return "", raw, false
	}
	raw = strings.TrimLeft(raw[len(pseudoSchemes[i]):], "/")
	if scheme, rest, ok = cutHTTP(raw); ok {
		return scheme, rest, true
	}
	return "http", raw, true
}

// cutHTTP cuts off http or https, and the slashes behind it.
func cutHTTP(raw string) (scheme, rest string, ok bool) {
	for _, start := range [...]string{"https:/", "http:/"} {
		if hasPrefixFold(raw, start) {
			return strings.TrimSuffix(start, ":/"), strings.TrimPrefix(raw[len(start):], "/"), true
		}
	}
	return "", raw, false
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// ParseWritten reads an address as a person writes it: what [Parse] reads, and host.name/path, which
// means https.
func ParseWritten(raw string) (URL, error) { return Parse(Written(raw)) }

// Written returns the URL that a person means by an address that may lack its scheme. It changes nothing
// else.
func Written(raw string) string {
	text := strings.TrimSpace(raw)
	host := text
	if i := strings.IndexAny(text, "/?#"); i >= 0 {
		host = text[:i]
	}
	if LooksLikeHost(host) {
		return "https://" + text
	}
	return raw
}

// LooksLikeHost reports whether a text without a scheme may be a host: a name with a dot or a port, or an
// IP address.
func LooksLikeHost(text string) bool {
	var u URL
	if u.setHost(text) != nil || strings.HasSuffix(text, ":") {
		return false
	}
	return strings.ContainsAny(text, ".:")
}
