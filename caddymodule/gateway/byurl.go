// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/url"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/internal/feedurl"
)

// asked is a feed that a reader asks for by its URL.
type asked struct {
	target string // the URL, as written
	secret string // of /~<secret>/, decoded
	signed bool   // there was such a prefix
	bare   bool   // the path begins with what may be a host, and maybe is something else
}

// readByURL finds the URL of a feed in a request's URL. It takes
//
//	/https://host/path?query     as well as http://
//	/https:/host/path            something in between folded the slashes
//	/https%3A%2F%2Fhost%2Fpath   something in between escaped them
//	/feed://host/path            feed: is no scheme of its own
//	/host.name/path              https is tried
//	/?url=<escaped>
//
// each of them also behind /~<secret>. What comes out is what was written, escapes
// and query included: an origin may tell /a%2Fb from /a/b and ?x from ?x=. It
// reports false where the path is none of these.
//
// The original URL is the request's before rewrites, nil where it is not known.
func readByURL(u, original *url.URL) (a asked, ok bool) {
	path := u.EscapedPath()
	if original != nil {
		path = unfold(path, original.EscapedPath())
	}
	if rest, found := cutTilde(path); found {
		secret, tail, _ := strings.Cut(rest, "/")
		plain, err := url.PathUnescape(secret)
		if err != nil {
			return asked{}, false
		}
		a.secret, a.signed = plain, true
		path = "/" + tail
	}
	rest := strings.TrimLeft(path, "/") // a base URL that ends in a slash, and another one
	if rest == "" {
		a.target, ok = urlParameter(u.RawQuery)
		return a, ok
	}
	query := ""
	if u.RawQuery != "" || u.ForceQuery {
		query = "?" + u.RawQuery
	}
	if scheme, after, found := cutScheme(rest); found {
		if hasPrefixFold(after, "%2f") {
			plain, err := url.PathUnescape(after)
			if err != nil {
				return asked{}, false
			}
			after = plain
			if strings.Contains(after, "?") {
				query = "" // the target's own is inside, so this one is the reader's
			}
		}
		after = strings.TrimPrefix(strings.TrimPrefix(after, "/"), "/")
		a.target = scheme + "://" + after + query
		return a, true
	}
	// A bare name would make a host of /favicon.ico and /robots.txt: there must be a path.
	if host, after, found := strings.Cut(rest, "/"); found && looksLikeHost(host) {
		a.target, a.bare = "https://"+host+"/"+after+query, !a.signed
		return a, true
	}
	return a, false
}

// cutTilde cuts off what a token begins with. Some clients escape it, though they need not
// (RFC 3986 section 2.3).
func cutTilde(path string) (rest string, found bool) {
	const escaped = "/%7e"
	if hasPrefixFold(path, escaped) {
		return path[len(escaped):], true
	}
	return strings.CutPrefix(path, "/~")
}

// cutScheme cuts http: or https: off, its colon escaped or not. The pseudo scheme
// feed: is http:, unless one of the two follows.
func cutScheme(s string) (scheme, after string, ok bool) {
	for _, scheme := range []string{"https", "http", "feed"} {
		if !hasPrefixFold(s, scheme) {
			continue
		}
		for _, colon := range []string{":", "%3a"} {
			after := s[len(scheme):]
			if !hasPrefixFold(after, colon) {
				continue
			}
			after = after[len(colon):]
			if scheme != "feed" {
				return scheme, after, true
			}
			if scheme, after, ok := cutScheme(strings.TrimLeft(after, "/")); ok {
				return scheme, after, true
			}
			return "http", after, true
		}
	}
	return "", "", false
}

// urlParameter returns the value of the parameter url. A URL that was pasted
// without escaping it, query and all, is understood too: an escaped one holds no
// question mark.
func urlParameter(rawQuery string) (string, bool) {
	for rest := rawQuery; rest != ""; {
		pair, after, _ := strings.Cut(rest, "&")
		value, found := strings.CutPrefix(pair, "url=")
		if !found {
			rest = after
			continue
		}
		if _, _, plain := cutScheme(value); plain && strings.Contains(value, "?") {
			return strings.TrimPrefix(rest, "url="), true
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return "", false
		}
		value = strings.TrimSpace(value)
		if host, _, found := strings.Cut(value, "/"); found && looksLikeHost(host) {
			value = "https://" + value
		}
		return value, value != ""
	}
	return "", false
}

// looksLikeHost reports whether a path segment can be meant as a host: a dotted
// name, or an IPv4 address, with or without a port.
func looksLikeHost(segment string) bool {
	name, port, hasPort := strings.Cut(segment, ":")
	if hasPort && (port == "" || strings.Trim(port, "0123456789") != "") {
		return false
	}
	name, err := feedurl.ParseHost(name)
	return err == nil && strings.Contains(name, ".")
}

// unfold returns the path of a request as it was written, without a prefix that Caddy's
// handle_path or strip_prefix have removed.
func unfold(path, original string) string {
	if path == original {
		return path
	}
	if _, tail, found := cutBase(path, original); found {
		return "/" + strings.TrimLeft(tail, "/")
	}
	return path
}

// cutBase parts the path that was asked for into the prefix that handlers have removed,
// and the rest of it as it was written: handle_path and strip_prefix clean that too,
// which folds slashes and resolves dots, and that changes the URL in it. The rest is the
// end of the original path that comes to the same when it is cleaned. It reports false
// where there is none, as after a rewrite to another path.
func cutBase(path, original string) (base, tail string, found bool) {
	const patience = 32 // segments of a prefix
	from := 0
	for range patience {
		slash := strings.IndexByte(original[from:], '/')
		if slash < 0 {
			break
		}
		base, tail := original[:from+slash], original[from+slash:]
		if len(tail) < len(path) {
			break
		}
		if caddyhttp.CleanPath(tail, true) == path {
			return base, tail, true
		}
		from += slash + 1
	}
	return "", "", false
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
