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

// maxKey is the longest key, in bytes. Requests with longer ones are not shared.
const maxKey = 4096

// keyOf returns the key of a request. It reports false if the request cannot be shared: the
// configuration does not name its host, or the key is too long.
func (s *Shield) keyOf(r *http.Request) (poller.ShieldKey, bool) {
	k := poller.ShieldKey{Shield: s.name, Scheme: scheme(r)}
	var ok bool
	if k.Host, ok = s.hostOf(r, k.Scheme); !ok {
		return k, false
	}
	k.Path, k.Query = escapedPath(r.URL), s.Query.kept(r.URL.RawQuery)
	if original := poller.OriginalURL(r); original != nil {
		if requested := escapedPath(original); requested != k.Path {
			k.Path, k.Target = requested, k.Path
		}
	}
	return k, len(k.Path)+len(k.Target)+len(k.Query) <= maxKey
}

// escapedPath returns a path as in a request line, without spaces.
func escapedPath(u *url.URL) string {
	if path := u.EscapedPath(); strings.HasPrefix(path, "/") {
		return path
	}
	return "/" + u.EscapedPath()
}

// scheme returns the scheme of a request. A trusted proxy may say it.
func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	if proto := r.Header["X-Forwarded-Proto"]; len(proto) > 0 && strings.EqualFold(proto[0], "https") {
		if trusted, _ := caddyhttp.GetVar(r.Context(), caddyhttp.TrustedProxyVarKey).(bool); trusted {
			return "https"
		}
	}
	return "http"
}

// address is an address of a site.
type address struct {
	scheme string // empty: https, unless Caddy's options say otherwise
	host   string // normalized; *.domain covers one more label; empty: any
	port   string // with its colon; empty: the scheme's default
}

func (a address) schemeOrHTTPS() string {
	if a.scheme == "" {
		return "https"
	}
	return a.scheme
}

// parseAddress parses the address of a site as a Caddyfile has it.
func parseAddress(text string) (a address, err error) {
	parsed, err := httpcaddyfile.ParseAddress(text)
	if err != nil {
		return a, err
	}
	a = address{scheme: parsed.Scheme}
	if standard := map[string]string{"http": "80", "https": "443"}[a.schemeOrHTTPS()]; parsed.Port != "" && parsed.Port != standard {
		a.port = ":" + parsed.Port
	}
	if parsed.Host == "" || parsed.Host == "*" {
		return a, nil
	}
	name, wild := strings.CutPrefix(parsed.Host, "*.")
	if a.host, err = feedurl.ParseHost(name); err != nil {
		return a, fmt.Errorf("%q is not the address of a site: %w", text, err)
	}
	if wild {
		a.host = "*." + a.host
	}
	return a, nil
}

// covers returns the normalized host of a request if the address names it.
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

// hostOf returns the host for which the origin is polled, with a port if it has one. It comes
// from the configuration: otherwise a client of a site for any host could store responses
// under any name.
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
		if a.port == "" || a.schemeOrHTTPS() != scheme { // a port belongs to the scheme it is written with
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

// parseHost parses the argument of host.
func parseHost(text string) (string, error) {
	u, err := feedurl.Parse("http://" + text + "/")
	if err != nil || u.Path() != "/" || u.Query() != "" || u.User() != nil || strings.ContainsAny(text, "/*") {
		return "", fmt.Errorf("host: %q is not a host: expected one such as blog.example.com", text)
	}
	return u.HostPort(), nil
}

// resolveSite resolves the hosts and the name under which the shield stores feeds.
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
		return fmt.Errorf("name: expected a text that no other shield has")
	}
	return nil
}

// Query selects the part of a request's query that belongs to the feed's URL.
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
		return fmt.Errorf("query: ignore and keep exclude each other")
	case !q.Ignore && len(q.Keep) == 0:
		return fmt.Errorf("query: expected ignore, or keep and names of parameters")
	}
	return nil
}

// kept returns the part of a query that belongs to the key: parameters as they were sent, in
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
	return strings.ReplaceAll(raw, " ", "%20") // HTTP/2 allows spaces
}
