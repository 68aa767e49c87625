// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"strconv"

	"github.com/dunglas/httpsfv"

	"github.com/feedpollard/pollard/policy"
)

// controlOf is what controls a response: a valid CDN-Cache-Control, else
// Cache-Control. The former takes the place of Cache-Control and of Expires
// altogether (RFC 9213 section 2.2).
func controlOf(header http.Header) (control policy.CacheControl, targeted bool) {
	if lines := header.Values("CDN-Cache-Control"); len(lines) > 0 {
		if control := parseTargeted(lines); len(control) > 0 {
			return control, true
		}
	}
	return policy.ParseCacheControl(header.Values("Cache-Control")), false
}

// parseTargeted reads a targeted field, a dictionary of structured fields. It is
// nil where the field is empty or no dictionary, and is to be ignored then (RFC
// 9213 section 2.1). The same goes for a directive whose value has another type
// than it should: what its author wanted is not known, so Cache-Control counts.
func parseTargeted(lines []string) policy.CacheControl {
	dictionary, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil
	}
	var control policy.CacheControl
	for _, name := range dictionary.Names() {
		member, _ := dictionary.Get(name)
		item, ok := member.(httpsfv.Item)
		if !ok {
			return nil
		}
		directive := policy.Directive{Name: name}
		switch value := item.Value.(type) {
		case bool:
			directive.Bare = true
			if !value || isDuration(name) {
				return nil
			}
		case int64:
			directive.Argument = strconv.FormatInt(value, 10)
			if !isDuration(name) && isDirective(name) || value < 0 {
				return nil
			}
		case string:
			directive.Argument = value
			if name != "no-cache" && name != "private" && isDirective(name) {
				return nil
			}
		default:
			if isDirective(name) {
				return nil
			}
		}
		control = append(control, directive)
	}
	return control
}

// isDuration reports whether a directive's value is a number of seconds.
func isDuration(name string) bool {
	switch name {
	case "max-age", "s-maxage", "stale-while-revalidate", "stale-if-error":
		return true
	}
	return false
}

// isDirective reports whether the cache knows a directive; others are extensions,
// of any type.
func isDirective(name string) bool {
	switch name {
	case "no-store", "no-cache", "private", "public", "must-revalidate", "proxy-revalidate", "must-understand":
		return true
	}
	return isDuration(name)
}
