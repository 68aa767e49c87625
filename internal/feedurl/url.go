// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package feedurl reads, compares and shows the URLs of feeds.
//
// [Parse] brings every spelling that sends the same request (RFC 3986 section 6,
// RFC 5891) to one canonical text, which is the feed's key. Differences that may matter
// to an origin (escapes, the order of parameters, an empty query) stay byte for byte.
// [ParseWritten] also reads what people write without a scheme.
// [Redact] returns a URL for logs and pages. A [HostTable] maps patterns of hosts to
// values. A [Gateway] converts between URLs and addresses at a gateway.
//
// It does not resolve names, and does not decide which addresses may be reached.
package feedurl

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// ErrInvalid reports that a text is not the URL of a feed. The error that wraps it
// says why, and does not quote the text.
var ErrInvalid = errors.New("not a feed URL")

// MaxLength is the longest canonical URL, in bytes.
const MaxLength = 4096

// URL is the canonical URL of a feed. Two of them are equal (==) exactly if their
// texts are. The zero URL is invalid.
type URL struct {
	text   string
	scheme string     // http or https
	user   string     // escaped, without the @; empty: none
	name   string     // host name in lower case as A-labels, or IP address without brackets
	addr   netip.Addr // of a name that is an IP address
	port   string     // decimal; empty: that of the scheme
	path   string     // as sent, beginning with a slash
	query  string     // as sent, with its question mark; empty: none
}

// Parse reads a URL as a person or an origin has written it. It accepts http and https
// URLs with white space around them, %20 after a path, slashes or a pseudo scheme such as
// feed: before them, or one slash instead of two (see [CutScheme]).
func Parse(raw string) (URL, error) {
	if len(raw) > 4*MaxLength { // escaping makes nothing shorter
		return URL{}, invalid("it is longer than %d bytes", MaxLength)
	}
	raw, _, _ = strings.Cut(raw, "#")
	scheme, rest, ok := CutScheme(strings.TrimLeft(trim(raw), "/"))
	if !ok {
		return URL{}, invalid("it must begin with http:// or https://")
	}
	u := URL{scheme: scheme}
	authority, target := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, target = rest[:i], rest[i:]
	}
	if err := u.setAuthority(authority); err != nil {
		return URL{}, err
	}
	if err := u.setTarget(target); err != nil {
		return URL{}, err
	}
	if u.setText(); len(u.text) > MaxLength {
		return URL{}, invalid("it is longer than %d bytes", MaxLength)
	}
	return u, nil
}

// MustParse is like [Parse] but panics if the URL is invalid. It is for URLs in code.
func MustParse(raw string) URL {
	u, err := Parse(raw)
	if err != nil {
		panic(fmt.Sprintf("feedurl: %q: %v", raw, err))
	}
	return u
}

func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrInvalid}, args...)...)
}

// trim removes white space and slashes that were pasted with a URL. An escaped space at
// the end of a query stays: a parameter may end in one.
func trim(raw string) string {
	raw = strings.TrimSpace(raw)
	for !strings.Contains(raw, "?") && strings.HasSuffix(raw, "%20") {
		raw = strings.TrimSpace(strings.TrimSuffix(raw, "%20"))
	}
	return raw
}

// HostPort returns the host of a Host field, as [URL.HostPort] has it.
func HostPort(scheme, field string) (string, error) {
	u := URL{scheme: scheme}
	err := u.setHost(field)
	return u.HostPort(), err
}

func (u *URL) setAuthority(authority string) error {
	host := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		host = authority[i+1:]
		if err := u.setUser(authority[:i]); err != nil {
			return err
		}
	}
	return u.setHost(host)
}

func (u *URL) setHost(host string) error {
	host, err := unescapeHost(host)
	if err != nil {
		return err
	}
	// The port is after the last colon, unless that is within an IPv6 address.
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		if err := u.setPort(host[i+1:]); err != nil {
			return err
		}
		host = host[:i]
	}
	if strings.HasPrefix(host, "[") != strings.Contains(host, ":") || strings.HasPrefix(host, "[") != strings.HasSuffix(host, "]") {
		return invalid("it names no valid host") // RFC 3986 section 3.2.2: only an IPv6 address stands in brackets
	}
	if u.name, err = ParseHost(host); err != nil {
		return err
	}
	u.addr, _ = netip.ParseAddr(u.name) // the zero Addr for a name
	return nil
}

// setUser sets the credentials, in one spelling.
func (u *URL) setUser(raw string) error {
	if strings.Trim(raw, ":") == "" {
		return nil
	}
	parsed, err := url.Parse("http://" + raw + "@host/")
	if err != nil || parsed.User == nil {
		return invalid("the user name or password has characters in it that must be escaped")
	}
	name := parsed.User.Username()
	password, _ := parsed.User.Password()
	// RFC 7617 section 2: a user name holds no colon, and neither holds control characters.
	if strings.Contains(name, ":") || strings.ContainsFunc(name+password, isControl) {
		return invalid("the user name or password has characters in it that cannot be sent")
	}
	u.user = userText(parsed.User)
	return nil
}

// userText returns credentials in one spelling: an empty password is sent like a missing
// one.
func userText(user *url.Userinfo) string {
	if password, _ := user.Password(); password == "" {
		return url.User(user.Username()).String()
	}
	return user.String()
}

func (u *URL) setPort(raw string) error {
	if raw == "" {
		return nil
	}
	if strings.Trim(raw, "0123456789") != "" {
		return invalid("its port is no number")
	}
	number, err := strconv.ParseUint(raw, 10, 16)
	if err != nil || number == 0 {
		return invalid("its port is not between 1 and 65535")
	}
	if port := strconv.FormatUint(number, 10); port != u.defaultPort() {
		u.port = port
	}
	return nil
}

func (u *URL) defaultPort() string {
	if u.scheme == "https" {
		return "443"
	}
	return "80"
}

// setTarget sets path and query as written, but characters outside of ASCII (RFC 3987
// section 3.1) and spaces are escaped, and control characters are refused.
func (u *URL) setTarget(raw string) error {
	var b strings.Builder
	if !strings.HasPrefix(raw, "/") {
		b.WriteByte('/') // RFC 9112 section 3.2.1: an empty path is sent as "/"
	}
	for i := range len(raw) {
		switch c := raw[i]; {
		case c < ' ' || c == 0x7f:
			return invalid("it has a control character in it")
		case c == ' ' || c > 0x7f:
			fmt.Fprintf(&b, "%%%02X", c)
		default:
			b.WriteByte(c)
		}
	}
	u.path = b.String()
	if i := strings.IndexByte(u.path, '?'); i >= 0 {
		u.path, u.query = u.path[:i], u.path[i:]
	}
	// A path that begins with two slashes cannot be passed to net/http as it is (see
	// RequestURL), so it is escaped as net/url would.
	if strings.HasPrefix(u.path, "//") && u.plainRequestURL().EscapedPath() != u.path {
		u.path = escapeIllegal(u.path)
	}
	return nil
}

// escapeIllegal escapes what RFC 3986 section 3.3 does not allow in a path, lone
// percent signs included.
func escapeIllegal(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		lone := c == '%' && (i+2 >= len(path) || !isHex(path[i+1]) || !isHex(path[i+2]))
		if lone || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func (u *URL) setText() {
	user := ""
	if u.user != "" {
		user = u.user + "@"
	}
	u.text = u.scheme + "://" + user + u.HostPort() + u.path + u.query
}

// Canonical returns the canonical text of a URL, which is its feed's key.
func Canonical(raw string) (string, error) {
	u, err := Parse(raw)
	return u.String(), err
}

// String returns the canonical text, which is the feed's key. It contains credentials, so
// it must not be logged or shown; see [URL.Redacted].
func (u URL) String() string { return u.text }

// Redacted returns the URL for logs and pages; see [Redact].
func (u URL) Redacted() string { return Redact(u.text) }

// Scheme returns http or https.
func (u URL) Scheme() string { return u.scheme }

// Name returns the host without port: a name in lower case as A-labels without a trailing dot,
// or an IP address without brackets.
func (u URL) Name() string { return u.name }

// Addr returns the host if it is an IP address, and the zero Addr if it is a name.
func (u URL) Addr() netip.Addr { return u.addr }

// Port returns the port in decimal. Default: that of the scheme.
func (u URL) Port() string { return cmp.Or(u.port, u.defaultPort()) }

// HostPort returns the host for the Host field (RFC 9110 section 7.2): with a port unless
// that is the scheme's default.
func (u URL) HostPort() string {
	switch {
	case u.port != "":
		return net.JoinHostPort(u.name, u.port)
	case u.addr.Is6():
		return "[" + u.name + "]"
	}
	return u.name
}

// IsAt reports whether a Host field, in any case, is that of [URL.HostPort].
func (u URL) IsAt(field string) bool {
	host, port := field, ""
	if i := strings.LastIndexByte(field, ':'); i > strings.LastIndexByte(field, ']') {
		host, port = field[:i], field[i+1:]
	}
	if u.addr.Is6() {
		plain, bracket := strings.CutPrefix(host, "[")
		if host = strings.TrimSuffix(plain, "]"); !bracket {
			return false
		}
	}
	return port == u.port && strings.EqualFold(host, u.name)
}

// Address returns host and port, for a dialer.
func (u URL) Address() string { return net.JoinHostPort(u.name, u.Port()) }

// Origin returns scheme, host and port (RFC 6454), to which credentials are bound.
func (u URL) Origin() string { return u.scheme + "://" + u.HostPort() }

// Path returns the path as sent.
func (u URL) Path() string { return u.path }

// Query returns the query as sent with its question mark, or "".
func (u URL) Query() string { return u.query }

// User returns the credentials in the URL, or nil.
func (u URL) User() *url.Userinfo {
	if u.user == "" {
		return nil
	}
	parsed, err := url.Parse("http://" + u.user + "@host/")
	if err != nil {
		return nil // never: it was encoded by url.Userinfo
	}
	return parsed.User
}

// WithUser returns the URL with other credentials; nil: with none.
func (u URL) WithUser(user *url.Userinfo) URL {
	u.user = ""
	if user != nil {
		u.user = userText(user)
	}
	u.setText()
	return u
}

// RequestURL returns the URL, without credentials, in the form in which net/http sends
// path and query unchanged.
func (u URL) RequestURL() *url.URL {
	r := u.plainRequestURL()
	// Opaque is sent as it is, unless it begins with two slashes: then net/url takes
	// it for an authority. Parse has escaped such a path.
	if r.EscapedPath() != u.path && !strings.HasPrefix(u.path, "//") {
		r.Opaque = u.path
	}
	return r
}

func (u URL) plainRequestURL() *url.URL {
	r := &url.URL{Scheme: u.scheme, Host: u.HostPort(), Path: u.path, RawPath: u.path}
	if plain, err := url.PathUnescape(u.path); err == nil {
		r.Path = plain
	}
	if u.query != "" {
		r.RawQuery = u.query[1:]
		r.ForceQuery = r.RawQuery == ""
	}
	return r
}
