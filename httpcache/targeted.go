// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"slices"
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

// targetedTypes are the types that the arguments of directives have; extensions
// may have any.
var targetedTypes = map[string][]string{
	"max-age": {"number"}, "s-maxage": {"number"}, "stale-while-revalidate": {"number"}, "stale-if-error": {"number"},
	"no-cache": {"none", "names"}, "private": {"none", "names"},
	"no-store": {"none"}, "public": {"none"}, "must-revalidate": {"none"}, "proxy-revalidate": {"none"}, "must-understand": {"none"},
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
		item, _ := member.(httpsfv.Item) // else an inner list
		directive, has := policy.Directive{Name: name}, ""
		switch value := item.Value.(type) {
		case bool:
			if directive.Bare = true; value {
				has = "none"
			}
		case int64:
			if directive.Argument = strconv.FormatInt(value, 10); value >= 0 {
				has = "number"
			}
		case string:
			directive.Argument, has = value, "names"
		}
		if types, known := targetedTypes[name]; known && !slices.Contains(types, has) {
			return nil
		}
		control = append(control, directive)
	}
	return control
}
