// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/feedurl"
)

// maxKey is the longest key, in bytes. What is longer is not shared.
const maxKey = 4096

// keyOf is the key of what a request asks for; false where it cannot be shared, as
// the site that it is for has no name in the configuration.
func (s *Shield) keyOf(r *http.Request) (poller.ShieldKey, bool) {
	k := poller.ShieldKey{Shield: s.name, Scheme: scheme(r)}
	var ok bool
	if k.Host, ok = s.hostOf(r, k.Scheme); !ok {
		return k, false
	}
	k.Path, k.Query = escapedPath(r.URL), s.Query.kept(r.URL.RawQuery)
	if original := poller.OriginalURL(r); original != nil {
		if asked := escapedPath(original); asked != k.Path {
			k.Path, k.Target = asked, k.Path
		}
	}
	return k, len(k.Path)+len(k.Target)+len(k.Query) <= maxKey
}

// escapedPath is a path as a request line has it. It has no space in it.
func escapedPath(u *url.URL) string {
	if path := u.EscapedPath(); strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + u.EscapedPath()
}

// scheme is what the reader used, as far as that is known: a proxy that is trusted
// may tell.
func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	if told := r.Header["X-Forwarded-Proto"]; len(told) > 0 && strings.EqualFold(told[0], "https") {
		if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
			return "https"
		}
	}
	return "http"
}

// address is one of a site.
type address struct {
	scheme string // empty: https, unless the whole of Caddy is told otherwise
	host   string // normal; *.domain covers one label more; empty: any
	port   string // with its colon; empty: the scheme's own
}

func (a address) schemeOrHTTPS() string {
	if a.scheme == "" {
		return "https"
	}
	return a.scheme
}

// parseAddress reads the address of a site as a Caddyfile has it.
func parseAddress(text string) (a address, err error) {
	parsed, err := httpcaddyfile.ParseAddress(text)
	if err != nil {
		return a, err
	}
	a = address{scheme: parsed.Scheme}
	if own := map[string]string{"http": "80", "https": "443"}[a.schemeOrHTTPS()]; parsed.Port != "" && parsed.Port != own {
		a.port = ":" + parsed.Port
	}
	if parsed.Host == "" || parsed.Host == "*" {
		return a, nil
	}
	name, wild := strings.CutPrefix(parsed.Host, "*.")
	if a.host, err = feedurl.ParseHost(name); err != nil {
		return a, fmt.Errorf("%q is no address of a site: %w", text, err)
	}
	if wild {
		a.host = "*." + a.host
	}
	return a, nil
}

// covers returns the host of a request, without port and in lower case, if the
// address names it.
func (a address) covers(host string) (string, bool) {
	domain, wild := strings.CutPrefix(a.host, "*.")
	if !wild {
		return a.host, a.host != "" && a.host == host
	}
	label, rest, _ := strings.Cut(host, ".")
	if rest != domain || label == "" {
		return "", false
	}
	normal, err := feedurl.ParseHost(host)
	return normal, err == nil
}

// hostOf is the host that the origin is asked for, with its port if it has one: as
// it is configured, never just what a request says. Whoever reaches a site that is
// for any host could have things stored for others under any name otherwise.
func (s *Shield) hostOf(r *http.Request, scheme string) (string, bool) {
	if s.Host != "" {
		return s.host, true
	}
	name := strings.ToLower(hostWithoutPort(r.Host))
	found := ""
	for _, a := range s.addresses {
		host, ok := a.covers(name)
		if !ok {
			continue
		}
		if strings.Contains(host, ":") {
			host = "[" + host + "]"
		}
		if a.port == "" || a.schemeOrHTTPS() != scheme { // a port belongs to the scheme that it is written with
			found = host
			continue
		}
		return host + a.port, true
	}
	return found, found != ""
}

func hostWithoutPort(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return strings.Trim(host, "[]")
}

// parseHost reads the argument of host.
func parseHost(text string) (string, error) {
	u, err := feedurl.Parse("http://" + text + "/")
	if err != nil || u.Path() != "/" || u.Query() != "" || u.User() != nil || strings.ContainsAny(text, "/*") {
		return "", fmt.Errorf("host: %q is no host: expected one such as blog.example.com", text)
	}
	return u.HostPort(), nil
}

// resolveSite resolves under which hosts and which name the shield keeps what it keeps.
func (s *Shield) resolveSite(repl *caddy.Replacer) (err error) {
	if s.Host != "" {
		if s.host, err = repl.ReplaceOrErr(s.Host, true, true); err != nil {
			return fmt.Errorf("host: %w", err)
		}
		if s.host, err = parseHost(s.host); err != nil {
			return err
		}
	}
	for _, text := range s.Sites {
		if text, err = repl.ReplaceOrErr(text, true, true); err != nil {
			return fmt.Errorf("sites: %w", err)
		}
		a, err := parseAddress(text)
		if err != nil {
			return fmt.Errorf("sites: %w", err)
		}
		if a.host != "" {
			s.addresses = append(s.addresses, a)
		}
	}
	s.name = s.Name
	if s.name == "" && len(s.Sites) > 0 {
		s.name = s.Sites[0]
	}
	if s.name == "" {
		return fmt.Errorf("name: expected a text that tells this shield from others")
	}
	return nil
}

// Query says which parameters of readers' queries are part of a feed's URL.
type Query struct {
	// Whether the query is ignored.
	Ignore bool `json:"ignore,omitempty"`

	// The names of the parameters to keep.
	Keep []string `json:"keep,omitempty"`
}

func (q *Query) check() error {
	switch {
	case q == nil:
		return nil
	case q.Ignore && len(q.Keep) > 0:
		return fmt.Errorf("query: ignore leaves nothing to keep")
	case !q.Ignore && len(q.Keep) == 0:
		return fmt.Errorf("query: expected ignore, or keep and names of parameters")
	}
	return nil
}

// kept is the part of a query that counts, parameters as they were written and in
// their order.
func (q *Query) kept(raw string) string {
	if raw == "" || q != nil && q.Ignore {
		return ""
	}
	if q != nil {
		var kept []string
		for pair := range strings.SplitSeq(raw, "&") {
			name, _, _ := strings.Cut(pair, "=")
			if plain, err := url.QueryUnescape(name); err == nil && slices.Contains(q.Keep, plain) {
				kept = append(kept, pair)
			}
		}
		raw = strings.Join(kept, "&")
	}
	return strings.ReplaceAll(raw, " ", "%20") // HTTP/2 lets one in
}
