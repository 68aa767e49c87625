// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package shieldkey holds what is known of the keys of shielded feeds.
package shieldkey

import "strings"

// The key of a shielded feed is
//
//	shield[<number>]:<scheme>://<host>/<path and query>[ <the same after rewrites>][\t<Field>=<values>]...
//
// It has the host that the operator has written, the path and query that the reader
// has, what rewrites have made of them where that differs, and the request fields of
// a variant, escaped. Neither space nor tab occurs within these. The number tells
// shields of one site from each other; that of the first is left out.
const (
	Prefix      = "shield"
	RewriteMark = " "
	VariantMark = "\t"
)

// ReadersURL is the URL under which readers know the feed of a key.
func ReadersURL(key string) string {
	if !strings.HasPrefix(key, Prefix) {
		return key
	}
	_, key, _ = strings.Cut(key, ":")
	if i := strings.IndexAny(key, RewriteMark+VariantMark); i >= 0 {
		key = key[:i]
	}
	return key
}

// Compare reports whether a key is of the feed that readers know by a URL without
// its scheme, such as example.com/feed, and whether it is of the same path at least.
func Compare(key, known string) (same, samePath bool) {
	_, key, _ = strings.Cut(key, "://")
	if i := strings.IndexAny(key, RewriteMark+VariantMark); i >= 0 {
		key = key[:i]
	}
	_, path, _ := strings.Cut(key, "/")
	_, wanted, _ := strings.Cut(known, "/")
	return key == known, path == wanted
}
