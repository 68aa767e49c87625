// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import "net/http"

// storable reports whether a shared cache may store the answer to a GET (RFC 9111
// section 3), and whether that is of any use.
func storable(status int, header http.Header, rules rules, r *http.Request) bool {
	switch {
	case status < 200, status == http.StatusNotModified:
		return false
	case rules.mustUnderstand && !understood(status):
		return false
	case rules.noStore && !rules.mustUnderstand:
		// RFC 9111 section 5.2.2.3: must-understand overrules the no-store beside it.
		return false
	case rules.private:
		return false
	case r.Header.Get("Authorization") != "" && !rules.authorized:
		return false
	case !rules.explicit && !rules.public && !heuristicallyCacheable(status):
		return false
	}
	if hasValidator(status, header) {
		return true
	}
	lasting := rules.lifetime > 0 || !rules.strict && max(rules.ifError, rules.whileRevalidate) > 0
	return lasting && !rules.noCache
}

// understood reports whether the cache knows what a status demands of caches.
func understood(status int) bool {
	return http.StatusText(status) != ""
}
