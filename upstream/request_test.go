// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Each request is the same to the byte: no cookie of an earlier poll comes back, and a redirect
// leaves no Referer.
func TestRequestIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.serve("example.com:80", func(r request, w io.Writer) {
			if r.path() == "/" {
				io.WriteString(w, answerText(302, "", "Location: /feed.xml", "Refresh: 0"))
				return
			}
			io.WriteString(w, ok(feedBody, "Set-Cookie: c=d"))
		})
		c := n.client(t, Settings{Version: "1.2", Contact: "https://example.org/about"})
		for range 2 {
			a := ask("http://example.com/")
			a.Subscribers = 7
			if got := c.Poll(patient(t), a); got.Failure != "" || string(got.Body) != feedBody {
				t.Fatalf("answer = %+v", got)
			}
		}
		want := "GET /feed.xml HTTP/1.1\r\n" +
			"Host: example.com\r\n" +
			"User-Agent: Pollard/1.2 (+https://example.org/about; 7 subscribers)\r\n" +
			"Accept: " + Accept + "\r\n" +
			"Accept-Encoding: gzip, br, zstd\r\n" +
			"\r\n"
		for i, r := range n.requests() {
			if want := strings.Replace(want, "/feed.xml", []string{"/", "/feed.xml"}[i%2], 1); r.head != want {
				t.Errorf("request %d: %q, want %q", i, r.head, want)
			}
		}
	})
}

// feedurl's FuzzParse holds that net/http gets the target as it was written. Here it is sent.
func TestRequestTargetIsAsWritten(t *testing.T) {
	for _, tt := range []struct{ name, url, host, target string }{
		{"escapes", "http://example.com/%7Euser/a%2fb%2Fc%41", "example.com", "/%7Euser/a%2fb%2Fc%41"},
		{"illegal characters", "http://example.com/a|b^c`d{e}\"<>[]\\", "example.com", "/a|b^c`d{e}\"<>[]\\"},
		{"lone percent signs", "http://example.com/100%/%zz?p=%&q=%g", "example.com", "/100%/%zz?p=%&q=%g"},
		{"empty parameters", "http://example.com/f?&a=&&=b&", "example.com", "/f?&a=&&=b&"},
		{"bare question mark, odd path", "http://example.com/a|b?", "example.com", "/a|b?"},
		{"two slashes, odd path", "http://example.com//a|c?d|e", "example.com", "//a%7Cc?d|e"},
		{"two slashes, lone percent sign", "http://example.com//100%", "example.com", "//100%25"},
		{"beyond ASCII", "http://example.com/f\u00fcr?q=\u00e4", "example.com", "/f%C3%BCr?q=%C3%A4"},
		{"other port", "http://example.com:8080/", "example.com:8080", "/"},
		{"IPv6", "http://[2001:DB8::1]:8080/f", "[2001:db8::1]:8080", "/f"},
		{"IDN", "http://B\u00fccher.example/f", "xn--bcher-kva.example", "/f"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			for _, address := range []string{"example.com:80", "example.com:8080", "[2001:db8::1]:8080", "xn--bcher-kva.example:80"} {
				n.say(address, ok(feedBody))
			}
			a := n.client(t, Settings{}).Poll(t.Context(), ask(tt.url))
			if a.Failure != "" {
				t.Fatalf("poll failed: %v", a.Err)
			}
			r := n.requests()[0]
			if host, _ := r.field("Host"); r.line() != "GET "+tt.target+" HTTP/1.1" || host != tt.host {
				t.Errorf("sent %q, Host %q; want %q, %q", r.line(), host, tt.target, tt.host)
			}
			if want := "http://" + tt.host + tt.target; a.URL != want {
				t.Errorf("URL = %q, want as sent: %q", a.URL, want)
			}
		})
	}
}

func TestRequestTargetOverHTTP2(t *testing.T) {
	got := make(chan string, 1)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Proto + " " + r.RequestURI
		w.Write([]byte(feedBody))
	}))
	s.EnableHTTP2 = true
	s.StartTLS()
	defer s.Close()
	for _, target := range []string{"/%7Eu/a%2fb?", "//x?&a=&&b", "/a|b?z=1&a="} {
		c := New(WithTLS(s.Client().Transport.(*http.Transport).TLSClientConfig.Clone()))
		c.Apply(Settings{Private: loopback})
		if a := c.Poll(t.Context(), ask(s.URL+target)); a.Failure != "" {
			t.Fatalf("poll failed: %v", a.Err)
		}
		c.Close()
		if sent, want := <-got, "HTTP/2.0 "+target; sent != want {
			t.Errorf("sent %q, want %q", sent, want)
		}
	}
}

func TestValidatorsByteForByte(t *testing.T) {
	const url = "http://example.com/feed"
	for _, tt := range []struct {
		name, etag, modified string
		noETag, noModified   bool
	}{
		{name: "both", etag: `"abc"`, modified: "Mon, 02 Jan 2006 15:04:05 GMT"},
		{name: "weak", etag: `W/"abc"`},
		{name: "suffix", etag: `"abc-gzip"`},
		{name: "two dashes", etag: `"abc--gzip"`},
		{name: "unquoted", etag: `abc`},
		{name: "half quoted", etag: `"abc`},
		{name: "doubly quoted", etag: `""abc""`},
		{name: "lower-case weak", etag: `w/"abc"`},
		{name: "list", etag: `"a", "b"`},
		{name: "spaces and tab inside", etag: "\"a b\tc\""},
		{name: "obs-text", etag: "\"\xfc\x80\xff\""},
		{name: "UTF-8", etag: "\"\u00fc\""},
		{name: "wrong day", modified: "Fri, 02 Jan 2006 15:04:05 GMT"},
		{name: "zone", modified: "Mon, 02 Jan 2006 15:04:05 +0000"},
		{name: "lower-case month", modified: "mon, 02 jan 2006 15:04:05 gmt"},
		{name: "two-digit year", modified: "Monday, 02-Jan-06 15:04:05 GMT"},
		{name: "no date at all", modified: "yesterday"},
		{name: "control character", etag: "\"a\x01b\"", modified: "x", noETag: true},
		{name: "line break", etag: "\"a\"\r\nCookie: x", modified: "x", noETag: true},
		{name: "long", etag: strings.Repeat("a", policy.MaxValidators)},
		{name: "none"},
	} {
		bubble(t, tt.name, func(t *testing.T) {
			var n memnet
			n.say("example.com:80", answerText(304, ""))
			a := ask(url)
			a.Validators = policy.Validators{URL: url, ETag: tt.etag, LastModified: tt.modified}
			got := n.client(t, Settings{}).Poll(t.Context(), a)
			r := n.requests()[0]
			etag, hasETag := r.field("If-None-Match")
			modified, hasModified := r.field("If-Modified-Since")
			wantETag, wantModified := tt.etag != "" && !tt.noETag, tt.modified != "" && !tt.noModified
			if hasETag != wantETag || hasETag && etag != tt.etag {
				t.Errorf("If-None-Match: %q (%v), want %q (%v)", etag, hasETag, tt.etag, wantETag)
			}
			if hasModified != wantModified || hasModified && modified != tt.modified {
				t.Errorf("If-Modified-Since: %q (%v), want %q (%v)", modified, hasModified, tt.modified, wantModified)
			}
			want := policy.FailureNone
			if !hasETag && !hasModified {
				want = policy.FailureUnasked
			}
			if got.Failure != want {
				t.Errorf("304: failure %q, want %q", got.Failure, want)
			}
		})
	}
}

func TestValidatorsAreBoundToTheirURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		n.say("example.com:80", answerText(302, "", "Location: http://example.net/b"))
		n.say("example.net:80", answerText(304, ""))
		c := n.client(t, Settings{})
		a := ask("http://example.com/a")
		for _, tt := range []struct {
			bound string
			want  []bool // conditional, by request
		}{
			{"http://example.com/a", []bool{true, false}},
			{"http://example.net/b", []bool{false, true}},
			{"http://example.org/", []bool{false, false}},
			{"", []bool{false, false}},
		} {
			before := len(n.requests())
			a.Validators = policy.Validators{URL: tt.bound, ETag: `"a"`, LastModified: "x"}
			c.Poll(t.Context(), a)
			var got []bool
			for _, r := range n.requests()[before:] {
				_, etag := r.field("If-None-Match")
				_, modified := r.field("If-Modified-Since")
				got = append(got, etag && modified)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("bound to %q: conditional %v, want %v", tt.bound, got, tt.want)
			}
		}
	})
}

func TestUserAgent(t *testing.T) {
	for _, tt := range []struct {
		name        string
		settings    Settings
		subscribers int
		want        string
	}{
		{"nothing known", Settings{}, 0, "Pollard (+" + project + ")"},
		{"version", Settings{Version: "1.0"}, 0, "Pollard/1.0 (+" + project + ")"},
		{"contact", Settings{Version: "1.0", Contact: "https://example.org"}, 0, "Pollard/1.0 (+https://example.org)"},
		{"subscribers", Settings{Version: "1.0"}, 3, "Pollard/1.0 (+" + project + "; 3 subscribers)"},
		{"one", Settings{}, 1, "Pollard (+" + project + "; 1 subscribers)"},
		{"all", Settings{Version: "1.0", Contact: "mailto:a@example.org"}, 12, "Pollard/1.0 (+mailto:a@example.org; 12 subscribers)"},
		{"replaced", Settings{UserAgent: "Mine/2", Version: "1.0", Contact: "x"}, 12, "Mine/2"},
		{"line break", Settings{UserAgent: "Mine/2\r\nCookie: x"}, 0, "Mine/2Cookie: x"},
	} {
		c := New()
		c.Apply(tt.settings)
		if got := c.settings.Load().Agent(tt.subscribers); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	c := New()
	private := policy.Ask{URL: feedurl.MustParse("http://user:password@example.com/"), Subscribers: 3}
	if p := newPoll(c, private); p.ask.Subscribers != 0 {
		t.Error("the readers of a private feed are counted")
	}
}

func TestCredentials(t *testing.T) {
	const basic = "Basic dTpwQHNz" // u:p@ss
	synctest.Test(t, func(t *testing.T) {
		var n memnet
		moved := func(to string) string { return answerText(302, "", "Location: "+to) }
		n.say("a.example.com:80", moved("http://a.example.com:8080/1"))
		n.say("a.example.com:8080", ok(feedBody))
		n.say("b.example.com:80", moved("http://x:y@c.example.com/2"))
		n.say("c.example.com:80", moved("http://b.example.com:81/3"))
		n.say("b.example.com:81", ok(feedBody))
		n.serve("d.example.com:80", func(r request, w io.Writer) {
			if to := map[string]string{"/0": "/1", "/1": "http://e.example.com/2", "/3": "/4"}[r.path()]; to != "" {
				io.WriteString(w, moved(to))
				return
			}
			io.WriteString(w, ok(feedBody))
		})
		n.say("e.example.com:80", moved("http://d.example.com/3"))
		for _, tt := range []struct {
			url  string
			want []string
		}{
			{"http://u:p%40ss@a.example.com:8080/0", []string{basic}},
			{"http://u:p%40ss@a.example.com/0", []string{basic, ""}}, // the port is part of the origin
			{"http://u:p%40ss@b.example.com/0", []string{basic, "", ""}},
			{"http://a.example.com/0", []string{"", ""}},
			{"http://u:p%40ss@d.example.com/0", []string{basic, basic, "", "", ""}}, // back at their origin they are gone
		} {
			before := len(n.requests())
			a := n.client(t, Settings{Hosts: unpaced}).Poll(t.Context(), ask(tt.url))
			if a.Failure != "" {
				t.Errorf("%s: %v", tt.url, a.Err)
			}
			var got []string
			for _, r := range n.requests()[before:] {
				value, _ := r.field("Authorization")
				got = append(got, value)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: Authorization %q, want %q", tt.url, got, tt.want)
			}
		}
	})
}
