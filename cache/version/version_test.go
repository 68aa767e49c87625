// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/version"
)

func sample() *version.Version {
	return &version.Version{
		Tag: "0123456789abcdef", OriginTag: `W/"origin's, own"`, ContentType: "application/rss+xml",
		LastModified: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), Coding: "gzip",
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
			if got := p.NotModified(h); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestCodings(t *testing.T) {
	for _, c := range []struct{ accept, want string }{
		{"", "identity"},
		{"-", "identity"},
		{"gzip", "gzip"},
		{"x-gzip", "gzip"},
		{"GZIP", "gzip"},
		{"gzip, deflate, br, zstd", "gzip"},
		{"gzip, zstd", "gzip"},
		{"*", "gzip"},
		{"gzip;q=0", "identity"},
		{"gzip;q=0, *", "identity"},
		{"gzip;q=0.001", "gzip"},
		{"br", "identity"},
		{"identity", "identity"},
		{"identity;q=1, gzip;q=0.5", "identity"},
		{"identity;q=0", "identity"},
		{"gzip; q=0.8 , identity;q=0.9", "identity"},
		{"deflate", "identity"},
		{"gzip;q=nonsense", "gzip"},
		{",,;;,", "identity"},
	} {
		var lines []string
		if c.accept != "-" {
			lines = []string{c.accept}
		}
		if got := version.PreferenceOf(lines).Best(true).String(); got != c.want {
			t.Errorf("Accept-Encoding %q: got %s, want %s", c.accept, got, c.want)
		}
	}
}

func TestETagsDoNotEndInWhatCaddyStrips(t *testing.T) {
	for _, c := range []version.Coding{version.Gzip, version.Identity} {
		for _, suffix := range []string{"-gzip", "-zstd", "-br"} {
			if tag := sample().ETag(c); strings.HasSuffix(strings.Trim(tag, `"`), suffix) {
				t.Errorf("ETag %s of %s", tag, c)
			}
		}
	}
}

func TestPack(t *testing.T) {
	for want, content := range map[version.Coding]string{version.Gzip: strings.Repeat("words ", 500), version.Identity: "<rss/>"} {
		coding, data, err := version.Pack([]byte(content))
		if err != nil || coding != want {
			t.Fatalf("%d bytes are stored as %v, %v", len(content), coding, err)
		}
		back, err := version.Unpack(coding, data, len(content))
		if err != nil || string(back) != content {
			t.Errorf("%s: got %q back, %v", want, back, err)
		}
		for name, damaged := range map[string]struct {
			data   []byte
			length int
		}{
			"shorter": {data, len(content) + 1}, "longer": {data, len(content) - 1},
			"cut": {data[:len(data)-1], len(content)}, "noise": {[]byte("noise"), len(content)},
		} {
			if _, err := version.Unpack(coding, damaged.data, damaged.length); err == nil {
				t.Errorf("%s, %s: no error", want, name)
			}
		}
	}
}

// A 200 to a reader that has another tag and our date has no date: curl and newsboat would
// compare it with theirs and drop the body.
func TestDateIsLeftOutOfAResponseToItself(t *testing.T) {
	const lm = "Mon, 02 Mar 2026 10:00:00 GMT"
	v := sample()
	v.Identify([]byte("<rss/>"))
	for since, want := range map[string]string{"": lm, lm: "", "Tue, 03 Mar 2026 10:00:00 GMT": "", "Sun, 01 Mar 2026 10:00:00 GMT": lm, "nonsense": lm} {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("If-None-Match", `"another"`)
		if since != "" {
			r.Header.Set("If-Modified-Since", since)
		}
		version.NewResponse(v, true).Write(w, r, v.Represent(version.Identity, []byte("<rss/>")))
		if got := w.Header().Get("Last-Modified"); got != want || w.Code != http.StatusOK {
			t.Errorf("If-Modified-Since %q: status %d, Last-Modified %q, want %q", since, w.Code, got, want)
		}
	}
}

func TestContentType(t *testing.T) {
	for given, want := range map[string]string{
		"application/rss+xml":                 "application/rss+xml",
		"text/xml; charset=ISO-8859-1":        "text/xml; charset=ISO-8859-1",
		"application/xml;charset=utf-8;x=y":   "application/xml;charset=utf-8;x=y",
		"text/html":                           "application/rss+xml",
		"text/html; charset=utf-8":            "application/rss+xml; charset=utf-8",
		"image/svg+xml":                       "application/rss+xml",
		"application/json":                    "application/rss+xml",
		"":                                    "application/rss+xml",
		"nonsense":                            "application/rss+xml",
		"text/xml; charset=utf-8; x=\"\xe9\"": "application/rss+xml; charset=utf-8",
		"text/xml; x=\"a\tb\"":                "application/rss+xml",
		"text/xml; x=" + strings.Repeat("a", 5000):        "application/rss+xml",
		"text/html; charset=" + strings.Repeat("a", 5000): "application/rss+xml",
	} {
		if got := version.ContentType(given, "rss"); got != want {
			t.Errorf("%.60q becomes %.60q, want %q", given, got, want)
		}
	}
}

// A date that goes back, stays, lies ahead or cannot be read makes none that is not later.
func TestLastModified(t *testing.T) {
	before := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for origin, want := range map[string]time.Time{
		"Mon, 02 Mar 2026 09:30:00 GMT": before.Add(30 * time.Minute), "Sun, 01 Mar 2026 09:00:00 GMT": before.Add(time.Hour),
		"Mon, 02 Mar 2026 09:00:00 GMT": before.Add(time.Hour), "Tue, 19 Jan 2038 03:14:07 GMT": before.Add(time.Hour),
		"": before.Add(time.Hour), "yesterday": before.Add(time.Hour),
	} {
		if got := version.LastModified(before, origin, before.Add(time.Hour)); !got.Equal(want) {
			t.Errorf("%q: %v, want %v", origin, got, want)
		}
	}
	if got := version.LastModified(before, "", before); !got.Equal(before.Add(time.Second)) {
		t.Errorf("within the second: %v", got)
	}
}
