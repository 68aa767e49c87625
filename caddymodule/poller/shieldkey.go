// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/url"
	"strings"
)

// ShieldKey identifies a stored response of a shield.
type ShieldKey struct {
	// Shield is the name of the shield. Two shields may have different origins for one URL.
	Shield string
	// Scheme and Host are those of the site's configured address. Host includes its port.
	Scheme, Host string
	// Path is the escaped path that readers request.
	Path string
	// Target is the path as rewritten by handlers before the shield, such as handle_path.
	// It is empty if they do not change the path.
	Target string
	// Query is the query without ignored parameters and without the question mark.
	Query string
	// Variant is a hash of the request header fields that the response depends on (Vary).
	// It is empty if the request has none of them.
	Variant string
}

// The text of a key is
//
//	shield:<name> <scheme>://<host><path>[?<query>][ target:<path>][ variant:<hash>]
//
// The name is escaped, and URLs contain no space. The URL of a feed that is not of a
// shield never begins with "shield:".
const (
	// ShieldCommon is the prefix of all keys of shields.
	ShieldCommon  = "shield:"
	targetPrefix  = "target:"
	variantPrefix = "variant:"
)

// ShieldPrefix returns the prefix of all keys of a shield.
func ShieldPrefix(shield string) string { return ShieldCommon + url.QueryEscape(shield) + " " }

// String returns the text of the key. [ParseShieldKey] reads it.
func (k ShieldKey) String() string {
	var b strings.Builder
	b.Grow(len(ShieldCommon) + len(k.Shield) + len(k.Scheme) + len(k.Host) + len(k.Path) + len(k.Target) + len(k.Query) + len(k.Variant) + 48)
	b.WriteString(ShieldCommon)
	b.WriteString(url.QueryEscape(k.Shield))
	b.WriteByte(' ')
	b.WriteString(k.URL())
	if k.Target != "" {
		b.WriteString(" " + targetPrefix)
		b.WriteString(k.Target)
	}
	if k.Variant != "" {
		b.WriteString(" " + variantPrefix)
		b.WriteString(k.Variant)
	}
	return b.String()
}

// URL returns the URL that readers request.
func (k ShieldKey) URL() string {
	if k.Query == "" {
		return k.Scheme + "://" + k.Host + k.Path
	}
	return k.Scheme + "://" + k.Host + k.Path + "?" + k.Query
}

// Plain returns the key without its variant.
func (k ShieldKey) Plain() ShieldKey {
	k.Variant = ""
	return k
}

// ParseShieldKey parses the text of a key.
func ParseShieldKey(text string) (k ShieldKey, ok bool) {
	text, ok = strings.CutPrefix(text, ShieldCommon)
	fields := strings.Split(text, " ")
	if !ok || len(fields) < 2 {
		return ShieldKey{}, false
	}
	name, err := url.QueryUnescape(fields[0])
	if err != nil {
		return ShieldKey{}, false
	}
	k.Shield = name
	scheme, rest, ok := strings.Cut(fields[1], "://")
	slash := strings.IndexByte(rest, '/')
	if !ok || slash < 0 {
		return ShieldKey{}, false
	}
	k.Scheme, k.Host = scheme, rest[:slash]
	k.Path, k.Query, _ = strings.Cut(rest[slash:], "?")
	for _, field := range fields[2:] {
		switch {
		case strings.HasPrefix(field, targetPrefix):
			k.Target = field[len(targetPrefix):]
		case strings.HasPrefix(field, variantPrefix):
			k.Variant = field[len(variantPrefix):]
		default:
			return ShieldKey{}, false
		}
	}
	return k, k.String() == ShieldCommon+text
}

// ReadersURL returns the URL that readers request for a key of the engine. A key that is
// not of a shield is that URL.
func ReadersURL(key string) string {
	if k, ok := ParseShieldKey(key); ok {
		return k.URL()
	}
	return key
}
