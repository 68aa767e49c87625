// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// urlRequest is a request for a feed by its URL.
type urlRequest struct {
	target   string // the URL as written
	token    string // of /~<token>/, decoded
	hasToken bool
}

// parseByURL finds the URL of a feed in a request's URL. It accepts
//
//	/https://host/path?query     as well as http://
//	/https:/host/path            if something merged the slashes
//	/https%3A%2F%2Fhost%2Fpath   if something escaped them
//	/feed://host/path            or another pseudo scheme for http, such as pcast
//	/?url=<escaped>              with or without a scheme
//
// and each of them after /~<token>, where /~<token>/host.name/path means https too: without a
// token, such a path may be one of the site, as /index.php/apps and /socket.io/ are. The target keeps the escapes and the query as written,
// because /a%2Fb and /a/b, or ?x and ?x=, may be different feeds. It reports false for any other
// path.
//
// The original URL is that of the request before rewrites, or nil.
func parseByURL(u, original *url.URL) (by urlRequest, ok bool) {
	path := u.EscapedPath()
	if original != nil && (original.Path != u.Path || original.RawPath != u.RawPath) && original.EscapedPath() != path {
		path = originalPath(path, original.EscapedPath())
	}
	if rest := strings.TrimLeft(path, "/"); len(rest)+1 != len(path) { // of a base URL that ends in a slash
		path = "/" + rest
	}
	if tilde := writtenTilde(path); tilde != "" {
		token, tail, _ := strings.Cut(path[len(tilde):], "/")
		plain, err := url.PathUnescape(token)
		if err != nil {
			return urlRequest{}, false
		}
		by.token, by.hasToken = plain, true
		path = "/" + tail
	}
	rest := strings.TrimLeft(path, "/")
	if rest == "" {
		by.target, ok = urlParameter(u.RawQuery)
		return by, ok
	}
	query := ""
	if u.RawQuery != "" || u.ForceQuery {
		query = "?" + u.RawQuery
	}
	escaped := strings.Contains(rest, "%") // most have no escapes
	if whole := escaped && escapedURL.MatchString(rest); whole || escaped && escapedColon.MatchString(rest) {
		plain, err := url.PathUnescape(rest)
		switch {
		case !whole:
			rest = escapedColon.ReplaceAllString(rest, "${1}:")
		case err != nil:
			return urlRequest{}, false
		case strings.Contains(plain, "?"):
			rest, query = plain, "" // the target contains its own query
		default:
			rest = plain
		}
	}
	if scheme, after, found := feedurl.CutScheme(rest); found {
		if usual := strings.TrimSuffix(rest, after); usual != "http://" && usual != "https://" {
			rest = scheme + "://" + after
		}
		by.target = rest + query
		return by, true
	}
	// Without the slash, /favicon.ico and /robots.txt would be hosts.
	if host, after, found := strings.Cut(rest, "/"); found && by.hasToken && feedurl.LooksLikeHost(host) {
		by.target = "https://" + host + "/" + after + query
		return by, true
	}
	return by, false
}

// writtenTilde returns the slash and the tilde before a token, or "". Some clients escape the tilde needlessly
// (RFC 3986 section 2.3).
func writtenTilde(path string) string {
	for _, tilde := range [...]string{"/~", "/%7E", "/%7e"} {
		if strings.HasPrefix(path, tilde) {
			return tilde
		}
	}
	return ""
}

// escapedURL and escapedColon match the beginning of a URL whose slashes are escaped, and of one of which
// something has escaped the colon behind its scheme alone.
var (
	escapedURL   = regexp.MustCompile(`(?i)^(?:[a-z]+(?::|%3a)/*)?[a-z]+(?::|%3a)%2f`)
	escapedColon = regexp.MustCompile(`(?i)^((?:[a-z]+:/*)?[a-z]+)%3a`)
)

// urlParameter returns the value of the parameter url. The value may be a URL that was pasted
// without escapes, query included: it contains a question mark, which an escaped URL does not.
func urlParameter(rawQuery string) (string, bool) {
	for rest := rawQuery; rest != ""; {
		pair, after, _ := strings.Cut(rest, "&")
		value, found := strings.CutPrefix(pair, "url=")
		if !found {
			rest = after
			continue
		}
		if _, _, plain := feedurl.CutScheme(value); plain && strings.Contains(value, "?") {
			return strings.TrimPrefix(rest, "url="), true
		}
		value, err := url.QueryUnescape(value)
		if err != nil {
			return "", false
		}
		value = feedurl.Written(strings.TrimSpace(value))
		return value, value != ""
	}
	return "", false
}

// originalPath returns the path of a request as it was sent, without a prefix that Caddy's
// handle_path or strip_prefix have removed.
func originalPath(path, original string) string {
	if _, tail, found := cutBase(path, original); found {
		return "/" + strings.TrimLeft(tail, "/")
	}
	return path
}

// cutBase splits the path that was sent into the prefix that handlers have removed, and the rest
// as it was sent. handle_path and strip_prefix also clean the path: they merge slashes and
// resolve dots, which changes the URL in it. The rest is the part of the original path that
// equals path when cleaned. It reports false if no part does, as after a rewrite to
// another path.
func cutBase(path, original string) (base, tail string, found bool) {
	const maxSegments = 32 // of a prefix
	from := 0
	for range maxSegments {
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

// basePath returns the path prefix of the gateway, which handlers before it, such as
// handle_path, have removed.
func basePath(r *door.Request) string {
	base, _, found := cutBase(r.URL.EscapedPath(), r.Sent.EscapedPath())
	if !found && r.URL.Path == "/" && r.URL.RawQuery == r.Sent.RawQuery {
		// handle_path /feeds* has removed all of /feeds. A rewrite to /?url= changes the query.
		base = r.Sent.EscapedPath()
	}
	// Cleaned as those handlers do: a path that begins with two slashes names a host.
	return strings.TrimSuffix(caddyhttp.CleanPath(base+"/", true), "/")
}
