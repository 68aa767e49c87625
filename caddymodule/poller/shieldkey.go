// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package shieldkey has the keys of what shields keep. They are made and read here
// and nowhere else.
package poller

import (
	"net/url"
	"strings"
)

// Key is everything that a stored answer of a shield depends on.
type ShieldKey struct {
	// Shield is the name of the shield: two of them may have different origins for
	// one URL.
	Shield string
	// Scheme and Host, with its port if it has one, are those of the site as it is configured.
	Scheme, Host string
	// Path is the escaped path that readers ask for.
	Path string
	// Target is what handlers before the shield have made of the path, as handle_path
	// does; empty: they have left it alone.
	Target string
	// Query is the part of the query that counts, without the question mark.
	Query string
	// Variant tells answers apart that depend on header fields of the request. It is a
	// hash of their values; empty: the request has none of them.
	Variant string
}

// The text of a key is
//
//	shield:<name> <scheme>://<host><path>[?<query>][ target:<path>][ variant:<hash>]
//
// The name is escaped, and a URL has no space in it. No URL of a feed elsewhere
// begins like this.
const (
	// Common is how the texts of all keys begin.
	ShieldCommon  = "shield:"
	targetPrefix  = "target:"
	variantPrefix = "variant:"
)

// Prefix is how the texts of all keys of a shield begin.
func ShieldPrefix(shield string) string { return ShieldCommon + url.QueryEscape(shield) + " " }

// String is the text of the key.
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

// URL is the URL under which readers know what is kept.
func (k ShieldKey) URL() string {
	if k.Query == "" {
		return k.Scheme + "://" + k.Host + k.Path
	}
	return k.Scheme + "://" + k.Host + k.Path + "?" + k.Query
}

// Plain is the key without the variant.
func (k ShieldKey) Plain() ShieldKey {
	k.Variant = ""
	return k
}

// Parse reads the text of a key.
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

// ReadersURL is the URL under which readers know the feed of a key of the engine,
// which is a URL already where the feed is not of a shield.
func ReadersURL(key string) string {
	if k, ok := ParseShieldKey(key); ok {
		return k.URL()
	}
	return key
}
