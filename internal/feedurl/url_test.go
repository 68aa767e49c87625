// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedurl

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestIsAt(t *testing.T) {
	for _, tt := range []struct {
		url, field string
		want       bool
	}{
		{"https://example.com/a", "EXAMPLE.com", true},
		{"https://example.com:8443/a", "example.com:8443", true},
		{"https://[2001:DB8::1]/a", "[2001:db8::1]", true},
		{"https://[2001:db8::1]:8443/a", "[2001:DB8::1]:8443", true},
		{"https://192.0.2.1:8443/a", "192.0.2.1:8443", true},

		{"https://example.com/a", "", false},
		{"https://example.com/a", "www.example.com", false},
		{"https://example.com/a", "example.com.evil.example", false},
		{"https://example.com/a", "example.com:443", false},
		{"https://example.com:8443/a", "example.com", false},
		{"https://example.com:8443/a", "example.com:844", false},
		{"https://[2001:db8::1]/a", "2001:db8::1", false},
		{"https://[2001:db8::1]:8443/a", "[2001:db8::1]", false},
	} {
		u := MustParse(tt.url)
		if got := u.IsAt(tt.field); got != tt.want || !u.IsAt(u.HostPort()) {
			t.Errorf("%s at %q: %v, want %v", tt.url, tt.field, got, tt.want)
		}
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct{ raw, want string }{
		{"https://example.com/feed.xml", "https://example.com/feed.xml"},
		{"HTTPS://Example.COM/Feed.XML", "https://example.com/Feed.XML"},
		{"https://example.com", "https://example.com/"},
		{"https://example.com?x=1", "https://example.com/?x=1"},
		{"https://example.com#part", "https://example.com/"},

		{"https://example.com:443/a", "https://example.com/a"},
		{"http://example.com:443/a", "http://example.com:443/a"},
		{"https://example.com:/a", "https://example.com/a"},
		{"https://example.com:00443/a", "https://example.com/a"},
		{"http://example.com:08080/a", "http://example.com:8080/a"},

		{"https://example.com./a", "https://example.com/a"},
		{"https://b\u00fccher.example/a", "https://xn--bcher-kva.example/a"},
		{"https://XN--BCHER-KVA.example/a", "https://xn--bcher-kva.example/a"},
		{"https://b%C3%BCcher.example/a", "https://xn--bcher-kva.example/a"},
		{"https://example\u3002com/a", "https://example.com/a"},
		{"https://r3---sn-a_b.example.com/a", "https://r3---sn-a_b.example.com/a"},

		{"https://1.0x7f.example.1com/a", "https://1.0x7f.example.1com/a"}, // only the last label makes a number
		{"https://a.0xg/a", "https://a.0xg/a"},
		{"https://192.0.2.1./a", "https://192.0.2.1/a"},
		{"https://[2001:DB8::1]:443/a", "https://[2001:db8::1]/a"},
		{"http://%5B2001:db8::1%5d:9100/a", "http://[2001:db8::1]:9100/a"},
		{"https://[::ffff:192.0.2.1]/a", "https://192.0.2.1/a"},
		{"https://[::ffff:c000:201]:8443/a", "https://192.0.2.1:8443/a"},
		{"http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1/"},

		{"https://user:pass@example.com/a", "https://user:pass@example.com/a"},
		{"https://%75ser:p%40ss@example.com/a", "https://user:p%40ss@example.com/a"},
		{"https://user:@example.com/a", "https://user@example.com/a"},
		{"https://:@example.com/a", "https://example.com/a"},
		{"https://:key@example.com/a", "https://:key@example.com/a"},

		{"https://example.com/%7euser/a%2Fb?q=%20&&b=&a", "https://example.com/%7euser/a%2Fb?q=%20&&b=&a"},
		{"https://example.com/feed?", "https://example.com/feed?"},
		{"https://example.com//double//slash", "https://example.com//double//slash"},
		{"https://example.com//a|b%zz", "https://example.com//a%7Cb%25zz"},
		{"https://example.com/a|b%zz", "https://example.com/a|b%zz"},
		{"https://example.com/a/../b", "https://example.com/a/../b"},
		{"https://example.com/a b?c d", "https://example.com/a%20b?c%20d"},
		{"https://example.com/f\u00fcr?q=\u00e4", "https://example.com/f%C3%BCr?q=%C3%A4"},
		{"https://example.com/f\xfcr", "https://example.com/f%FCr"},

		{" \thttps://example.com/a\r\n", "https://example.com/a"},
		{"https://example.com/a%20", "https://example.com/a"},
		{"https://example.com/a%20 %20#x", "https://example.com/a"},
		{"https://example.com%20", "https://example.com/"},
		{"https://example.com/a?q=b%20 ", "https://example.com/a?q=b%20"},
		{"//http://example.com/a", "http://example.com/a"},
		{"feed:https://example.com/a", "https://example.com/a"},
		{"feed://example.com/a", "http://example.com/a"},
		{"feed://https://example.com/a", "https://example.com/a"},
	} {
		u, err := Parse(c.raw)
		if err != nil || u.String() != c.want {
			t.Errorf("Parse(%q) = %s, %v, want %s", c.raw, u, err, c.want)
		}
		if again, err := Parse(u.String()); again != u {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", u, again, err, u)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, raw := range []string{
		"", "feed.xml", "example.com/feed", "//example.com/feed", "feed:", "pcast://", "feed:ftp:example.com", "feeds://example.com/", "ftp://example.com/", "javascript:alert(1)",
		"file:///etc/passwd", "https:", "https:example.com/", "https:/", "https://", "https:///path", "https://?", "https://.", "https://:80/",
		"https://exa mple.com/", "https://a..b/", "https://-a.example/", "https://a-.example/", "https://foo_\u00fc.example/", "https://a%zz/", "https://a%2fb/",
		"https://" + strings.Repeat("a", 64) + ".example/", "https://" + strings.Repeat("a.", 127) + "a/", "https://xn--a\u00fc.example/",
		"https://2130706433/", "https://0x7f.1/", "https://0177.0.0.01/", "https://127.1/", "https://1.2.3.4.5/", "https://0x/", "https://example.1/", "https://1/", "https://1.2.3/", "https://a.0xff/", "https://256.1.1.1/",
		"http://[::1", "http://::1/", "http://[::1]x/", "http://[192.0.2.1]/", "http://[example.com]/", "http://[fe80::1%25eth0]/", "http://%5Bfe80::1%25eth0%5D/", "http://%255B::1%255D/", "https://a%2540b/", "http://[fe80::1%eth0]/", "http://[]/",
		"https://example.com:0/", "https://example.com:65536/", "https://example.com:80x/", "https://example.com:-1/", "https://example.com:80:80/",
		"https://a\\@example.com/", "https://example.com\\@evil.example/", "https://a%3Ab:c@example.com/", "https://a%0a:c@example.com/", "https://%zz@example.com/", "https://\u00fc@example.com/",
		"https://example.com/\na", "https://example.com/\x00", "https://example.com/?\x7f", "https://exam\tple.com/",
		"https://example.com/" + strings.Repeat("a", MaxLength), "https://example.com/" + strings.Repeat("\u00fc", MaxLength/4), "https://example.com/" + strings.Repeat(" ", 5*MaxLength),
	} {
		u, err := Parse(raw)
		if !errors.Is(err, ErrInvalid) {
			t.Errorf("Parse(%.60q) = %s, %v, want ErrInvalid", raw, u, err)
		}
		if u != (URL{}) {
			t.Errorf("Parse(%.60q) = %+v beside the error", raw, u)
		}
	}
	for _, raw := range []string{"https://user:hunter2/x@example.com/", "https://us er:hunter2@example.com/", "https://h%zz:hunter2/"} {
		if _, err := Parse(raw); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Parse(%q): %v", raw, err)
		}
	}
}

func TestParts(t *testing.T) {
	for _, c := range []struct{ raw, origin, name, hostPort, address, site string }{
		{"https://u:p@www.example.co.uk:8443/a?b", "https://www.example.co.uk:8443", "www.example.co.uk", "www.example.co.uk:8443", "www.example.co.uk:8443", "example.co.uk"},
		{"http://example.com/", "http://example.com", "example.com", "example.com", "example.com:80", "example.com"},
		{"https://alice.github.io/", "https://alice.github.io", "alice.github.io", "alice.github.io", "alice.github.io:443", "alice.github.io"},
		{"https://github.io/", "https://github.io", "github.io", "github.io", "github.io:443", "github.io"},
		{"https://[2001:db8::1]/", "https://[2001:db8::1]", "2001:db8::1", "[2001:db8::1]", "[2001:db8::1]:443", "[2001:db8::1]:443"},
		{"https://192.0.2.1:81/", "https://192.0.2.1:81", "192.0.2.1", "192.0.2.1:81", "192.0.2.1:81", "192.0.2.1:81"},
		{"http://nas:5000/", "http://nas:5000", "nas", "nas:5000", "nas:5000", "nas:5000"},
		{"http://nas.home.arpa/", "http://nas.home.arpa", "nas.home.arpa", "nas.home.arpa", "nas.home.arpa:80", "nas.home.arpa:80"},
	} {
		u, err := Parse(c.raw)
		if err != nil {
			t.Fatal(err)
		}
		if u.Origin() != c.origin || u.Name() != c.name || u.HostPort() != c.hostPort || u.Address() != c.address || u.Site() != c.site {
			t.Errorf("%s: origin %q, name %q, host and port %q, address %q, site %q", c.raw, u.Origin(), u.Name(), u.HostPort(), u.Address(), u.Site())
		}
		if u.IsPrivate() != (c.site == c.address) || u.Addr().IsValid() != (strings.ContainsAny(c.name, ":") || c.name == "192.0.2.1") {
			t.Errorf("%s: private %v, address %v", c.raw, u.IsPrivate(), u.Addr())
		}
	}
}

func TestWithUser(t *testing.T) {
	u, err := Parse("https://u:p%3A@example.com/a")
	if err != nil {
		t.Fatal(err)
	}
	if password, _ := u.User().Password(); u.User().Username() != "u" || password != "p:" {
		t.Errorf("user %v", u.User())
	}
	plain := u.WithUser(nil)
	if plain.String() != "https://example.com/a" || plain.User() != nil {
		t.Errorf("without credentials: %s", plain)
	}
	if again := plain.WithUser(u.User()); again != u {
		t.Errorf("with credentials again: %s, want %s", again, u)
	}
}

// request is all that an origin sees of a URL, besides what all requests have.
func request(t *testing.T, u URL) string {
	t.Helper()
	r := http.Request{URL: u.RequestURL(), Host: u.HostPort(), Header: make(http.Header)}
	if user := u.User(); user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	return strings.Join([]string{u.Scheme(), u.Address(), r.Host, r.URL.RequestURI(), r.Header.Get("Authorization")}, " ")
}

func FuzzParse(f *testing.F) {
	for _, raw := range []string{
		"https://example.com/?a#b", "HTTP://u:p@[::1%25eth0]:80//x", "feed://b\u00fccher.example./a%2fb?&a=&&b", "//http://[::ffff:1.2.3.4]:080/a|b^c", "https://u:@h//x%zz?%",
		"http://@1.2.3.4:/ \xff%20", "http://%75:%40@example\u3002com/*;,:@", "https://example.com/..//./?\"<>`{}",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := Parse(raw)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("%q: %v", raw, err)
			}
			return
		}
		if again, err := Parse(u.String()); err != nil || again != u {
			t.Fatalf("%q: %+v becomes %+v, %v", raw, u, again, err)
		}
		// net/http sends path and query as they are in the text.
		if sent := u.RequestURL().RequestURI(); sent != u.Path()+u.Query() || strings.ContainsFunc(sent, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
			t.Fatalf("%q: %q is sent as %q", raw, u, sent)
		}
		if parsed, err := url.Parse(u.Origin()); err != nil || parsed.Hostname() != u.Name() {
			t.Fatalf("%q: origin %q: %v", raw, u.Origin(), err)
		}
		// The key is made of nothing but what is sent: the same request, the same key.
		sent := u.Scheme() + "://"
		if user := u.User(); user != nil {
			sent += user.String() + "@"
		}
		if sent += u.HostPort() + u.RequestURL().RequestURI(); sent != u.String() {
			t.Fatalf("%q: the key is %q, but %q is sent", raw, u, sent)
		}
		other := u.Scheme() + "://"
		if user := u.User(); user != nil {
			other += user.String() + "@"
		}
		host := strings.ToUpper(u.Name())
		if u.Addr().Is4() {
			host = "[::ffff:" + host + "]"
		} else if u.Addr().Is6() {
			host = "[" + host + "]"
		} else {
			host += "."
		}
		other += host + ":000" + u.Port() + u.Path() + u.Query() + " #part"
		if u.Query() == "" {
			other = strings.Replace(other, " #", "%20 #", 1)
		}
		if v, err := Parse(other); err != nil || v != u || request(t, v) != request(t, u) {
			if len(other) <= 4*MaxLength {
				t.Fatalf("%q and %q are one feed, but the latter is %q, %v", u, other, v, err)
			}
		}
	})
}

// A Host field has one form for each host.
func TestHostPort(t *testing.T) {
	for _, tt := range []struct{ sent, scheme, want string }{
		{"blog.test", "http", "blog.test"},
		{"BLOG.test.:80", "http", "blog.test"},
		{"blog.test:080", "http", "blog.test"},
		{"blog.test:", "http", "blog.test"},
		{"blog.test:443", "https", "blog.test"},
		{"blog.test:443", "http", "blog.test:443"},
		{"blog.test:8080", "http", "blog.test:8080"},
		{"127.0.0.1:8080", "http", "127.0.0.1:8080"},
		{"[::1]:8080", "http", "[::1]:8080"},
		{"", "http", ""},
		{"blog.test:http", "http", ""},
		{"blog.test:70000", "http", ""},
		{"blog.test/feed", "http", ""},
		{"user@blog.test", "http", ""},
		{"[::1%25eth0]", "http", ""},
	} {
		if got, err := HostPort(tt.scheme, tt.sent); err == nil && got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%s %q: got %q, %v, want %q", tt.scheme, tt.sent, got, err, tt.want)
		}
	}
}
