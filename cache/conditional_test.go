// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/internal/httpfield"
)

// sample is a version as readers see it.
func sample() *version {
	return &version{
		Number: 1, Tag: "0123456789abcdef", OriginTag: `W/"origin's, own"`, ContentType: "application/rss+xml",
		LastModified: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), Coding: codingGzip,
	}
}

func TestConditions(t *testing.T) {
	p := sample()
	const (
		lm     = "Mon, 02 Mar 2026 10:00:00 GMT"
		later  = "Tue, 03 Mar 2026 10:00:00 GMT"
		before = "Mon, 02 Mar 2026 09:59:59 GMT"
	)
	for _, c := range []struct {
		name    string
		headers [][2]string
		want    bool
	}{
		// RFC 9110 section 13.1.2.
		{"no condition", nil, false},
		{"identity tag", [][2]string{{"If-None-Match", `"0123456789abcdef"`}}, true},
		{"tag of another coding", [][2]string{{"If-None-Match", `"0123456789abcdef.gz"`}}, true},
		{"weak form", [][2]string{{"If-None-Match", `W/"0123456789abcdef.br"`}}, true},
		{"other tag", [][2]string{{"If-None-Match", `"0123456789abcdee"`}}, false},
		{"longer tag", [][2]string{{"If-None-Match", `"0123456789abcdef0"`}}, false},
		{"any", [][2]string{{"If-None-Match", `*`}}, true},
		{"in a list", [][2]string{{"If-None-Match", `"x", W/"y" ,"0123456789abcdef"`}}, true},
		{"in a list without spaces", [][2]string{{"If-None-Match", `"x","0123456789abcdef"`}}, true},
		{"list of others", [][2]string{{"If-None-Match", `"x", "y"`}}, false},
		{"in a second line", [][2]string{{"If-None-Match", `"x"`}, {"If-None-Match", `"0123456789abcdef"`}}, true},
		{"comma inside of a tag", [][2]string{{"If-None-Match", `"x,0123456789abcdef"`}}, false},
		{"origin's own tag", [][2]string{{"If-None-Match", `W/"origin's, own"`}}, true},
		{"origin's own tag, strong", [][2]string{{"If-None-Match", `"origin's, own"`}}, true},
		{"quotes lost", [][2]string{{"If-None-Match", `0123456789abcdef.gz`}}, true},
		{"suffix of a proxy", [][2]string{{"If-None-Match", `"0123456789abcdef-gzip"`}}, true},
		{"empty", [][2]string{{"If-None-Match", ``}}, false},
		{"unclosed", [][2]string{{"If-None-Match", `"`}}, false},

		// RFC 9110 section 13.1.3.
		{"our date", [][2]string{{"If-Modified-Since", lm}}, true},
		{"later date", [][2]string{{"If-Modified-Since", later}}, true},
		{"earlier date", [][2]string{{"If-Modified-Since", before}}, false},
		{"our date in the RFC 850 form", [][2]string{{"If-Modified-Since", "Monday, 02-Mar-26 10:00:00 GMT"}}, true},
		{"invalid date", [][2]string{{"If-Modified-Since", "yesterday"}}, false},
		{"two dates", [][2]string{{"If-Modified-Since", lm}, {"If-Modified-Since", lm}}, false},

		// RFC 9110 section 13.2.2: the tag overrides the date.
		{"other tag and our date", [][2]string{{"If-None-Match", `"x"`}, {"If-Modified-Since", lm}}, false},
		{"our tag and an earlier date", [][2]string{{"If-None-Match", `"0123456789abcdef"`}, {"If-Modified-Since", before}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			for _, f := range c.headers {
				h.Add(f[0], f[1])
			}
			if got := p.notModified(h); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestCodings(t *testing.T) {
	all := func(int) bool { return true }
	for _, c := range []struct{ accept, want string }{
		{"", codingIdentity},
		{"-", codingIdentity},
		{"gzip", codingGzip},
		{"x-gzip", codingGzip},
		{"GZIP", codingGzip},
		{"gzip, deflate, br, zstd", codingBrotli},
		{"gzip, zstd", codingGzip},
		{"*", codingBrotli},
		{"gzip;q=1.0, br;q=0.5", codingGzip},
		{"gzip;q=0", codingIdentity},
		{"gzip;q=0, *", codingBrotli},
		{"br;q=0.001", codingBrotli},
		{"br;q=0, gzip", codingGzip},
		{"identity", codingIdentity},
		{"identity;q=1, gzip;q=0.5", codingIdentity},
		{"identity;q=0", codingIdentity},
		{"gzip; q=0.8 , identity;q=0.9", codingIdentity},
		{"deflate", codingIdentity},
		{"gzip;q=nonsense", codingGzip},
		{",,;;,", codingIdentity},
	} {
		var lines []string
		if c.accept != "-" {
			lines = []string{c.accept}
		}
		if got := codings[preferred(acceptable(lines), all)]; got != c.want {
			t.Errorf("Accept-Encoding %q: got %s, want %s", c.accept, got, c.want)
		}
	}
}

func TestETagsDoNotEndInWhatCaddyStrips(t *testing.T) {
	for rank, tag := range newVersionHeaders(sample()).etags {
		for _, suffix := range []string{"-gzip", "-zstd", "-br"} {
			if strings.HasSuffix(strings.Trim(tag[0], `"`), suffix) {
				t.Errorf("ETag %s of %s", tag[0], codings[rank])
			}
		}
	}
}

func TestRestOfAVersion(t *testing.T) {
	c := newCoders()
	for name, body := range map[string]string{codingGzip: strings.Repeat("words ", 500), codingIdentity: "<rss/>"} {
		b, err := c.rest(t.Context(), []byte(body))
		if err != nil || b.Coding != name {
			t.Fatalf("%d bytes are stored as %v, %v", len(body), b, err)
		}
		back, err := c.identity(t.Context(), *b, len(body))
		if err != nil || string(back) != body {
			t.Errorf("%s: got %q back, %v", name, back, err)
		}
	}
	for name, stored := range map[string]store.Body{
		"noise": {Coding: codingGzip, Data: []byte("not gzip")}, "another size": {Coding: codingGzip, Data: mustRest(t, c, strings.Repeat("words ", 400))},
	} {
		if _, err := c.identity(t.Context(), stored, 3000); !errors.Is(err, store.ErrNoBody) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustRest(t *testing.T, c *coders, body string) []byte {
	t.Helper()
	b, err := c.rest(t.Context(), []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	return b.Data
}

func FuzzIfNoneMatch(f *testing.F) {
	for _, s := range []string{`"0123456789abcdef"`, `W/"a", "b"`, `*`, `"`, `W/`, `w/"`, `,,"a`, `""`, "\x00", `"origin's, own"`} {
		f.Add(s)
	}
	p := sample()
	f.Fuzz(func(t *testing.T, list string) {
		h := http.Header{"If-None-Match": {list}}
		got := p.notModified(h)
		if got && !strings.Contains(list, p.Tag) && !strings.Contains(list, "*") && !strings.Contains(list, httpfield.ParseTag(p.OriginTag).Opaque) {
			t.Errorf("%q names nothing of ours", list)
		}
	})
}

func FuzzAcceptEncoding(f *testing.F) {
	for _, s := range []string{"gzip", "br;q=0.5, *;q=0", ";q=", "gzip;q=1.0001", "*;q=0.00000", "q=1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, accept string) {
		got := codings[preferred(acceptable([]string{accept}), func(int) bool { return true })]
		if got != codingIdentity && !strings.Contains(strings.ToLower(accept), got) && !strings.Contains(accept, "*") {
			t.Errorf("%s was not asked for", got)
		}
	})
}
