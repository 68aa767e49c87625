// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/version"
)

func sample() *version.Version {
	return &version.Version{
		Tag: "0123456789abcdef", ContentType: "application/rss+xml",
		LastModified: time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC), Coding: "gzip",
	}
}

func TestConditions(t *testing.T) {
	p := sample()
	p.Since = p.LastModified.Add(20 * time.Minute)
	now := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	const (
		lm     = "Mon, 02 Mar 2026 10:00:00 GMT"
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
		{"origin's own tag", [][2]string{{"If-None-Match", `W/"origin's, own"`}}, false},
		{"origin's own tag, strong", [][2]string{{"If-None-Match", `"origin's, own"`}}, false},
		{"quotes lost", [][2]string{{"If-None-Match", `0123456789abcdef.gz`}}, true},
		{"suffix of a proxy", [][2]string{{"If-None-Match", `"0123456789abcdef-gzip"`}}, true},
		{"empty", [][2]string{{"If-None-Match", ``}}, false},
		{"unclosed", [][2]string{{"If-None-Match", `"`}}, false},

		// RFC 9110 section 13.1.3.
		{"our date", [][2]string{{"If-Modified-Since", lm}}, true},
		{"earlier date", [][2]string{{"If-Modified-Since", before}}, false},
		{"a date of days before, which may be the origin's", [][2]string{{"If-Modified-Since", "Sun, 01 Mar 2026 08:00:00 GMT"}}, false},
		{"within the hour of ours", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 10:59:59 GMT"}}, false},
		{"within the hour of the poll", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 11:19:59 GMT"}}, false},
		{"an hour after the poll", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 11:20:00 GMT"}}, true},
		{"a minute ahead", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 12:01:00 GMT"}}, true},
		{"further ahead", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 12:01:01 GMT"}}, false},
		{"our date in the RFC 850 form", [][2]string{{"If-Modified-Since", "Monday, 02-Mar-26 10:00:00 GMT"}}, true},
		{"our date as asctime", [][2]string{{"If-Modified-Since", "Mon Mar  2 10:00:00 2026"}}, true},
		{"our date with a zone", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 10:00:00 +0000"}}, true},
		{"our date in another zone", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 11:00:00 +0100"}}, true},
		{"local time as GMT", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 11:00:00 GMT"}}, false},
		{"our date as UTC", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 10:00:00 UTC"}}, true},
		{"an unknown zone", [][2]string{{"If-Modified-Since", "Mon, 02 Mar 2026 10:00:00 CET"}}, false},
		{"our date with a parameter", [][2]string{{"If-Modified-Since", lm + "; length=9"}}, true},
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
			if got := p.NotModified(h, now); got != c.want {
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

// The bodies of feeds are no larger than those that servers make as they answer, by level 6.
func TestPackIsSmall(t *testing.T) {
	words := strings.Fields("the a of pictures entry and in new feed is to reads it for who with notes on as this &lt;p&gt; &lt;/p&gt; &lt;br&gt; title= href= week year")
	for _, entries := range []int{3, 30, 300, 3000} {
		random := rand.New(rand.NewPCG(1, uint64(entries)))
		var b strings.Builder
		for i := range entries {
			fmt.Fprintf(&b, "<item><title>Entry %d</title><link>https://example.org/%x</link><pubDate>Mon, %02d Mar 2026 10:%02d:00 GMT</pubDate><description>", i, random.Uint32(), 1+i%28, i%60)
			for range 100 {
				b.WriteString(words[random.IntN(len(words))] + " ")
			}
			b.WriteString("</description></item>\n")
		}
		_, data, err := version.Pack([]byte(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		var usual bytes.Buffer
		w, _ := gzip.NewWriterLevel(&usual, 6)
		_, _ = w.Write([]byte(b.String()))
		_ = w.Close()
		if len(data) > usual.Len() {
			t.Errorf("%d bytes become %d, and %d at level 6", b.Len(), len(data), usual.Len())
		}
	}
}

// A 200 to a reader that has our date or a later one has no date: curl and newsboat would
// compare it with theirs and drop the body.
func TestDateIsLeftOutOfAResponseToItself(t *testing.T) {
	const lm = "Mon, 02 Mar 2026 10:00:00 GMT"
	v := sample()
	v.Identify([]byte("<rss/>"))
	for since, want := range map[string]string{"": lm, lm: "", "Tue, 03 Mar 2026 10:00:00 +0000": "", "Sun, 01 Mar 2026 10:00:00 GMT": lm, "nonsense": lm} {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		r.Header.Set("If-None-Match", `"another"`)
		if since != "" {
			r.Header.Set("If-Modified-Since", since)
		}
		version.NewResponse(v, true).Write(w, r, v.Represent(version.Identity, []byte("<rss/>")), v.LastModified)
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

// Dates grow from version to version, unless the clock was set back. One in the future is not given.
func TestLastModified(t *testing.T) {
	now := time.Date(2026, 3, 2, 9, 0, 0, 500, time.UTC)
	second := now.Truncate(time.Second)
	for before, want := range map[time.Time]time.Time{
		{}: second.Add(time.Second), second.Add(-time.Hour): second.Add(time.Second), second.Add(time.Second): second.Add(2 * time.Second),
		second.Add(59 * time.Second): second.Add(time.Minute), second.Add(time.Minute): second.Add(time.Second), second.Add(24 * time.Hour): second.Add(time.Second),
	} {
		if got := version.LastModified(before, now); !got.Equal(want) {
			t.Errorf("after %v: %v, want %v", before, got, want)
		}
	}
	v := sample()
	response := version.NewResponse(v, true)
	for behind, want := range map[time.Duration]bool{0: true, time.Minute: true, time.Minute + time.Second: false, -time.Hour: true} {
		notModified, whole := httptest.NewRecorder(), httptest.NewRecorder()
		response.WriteNotModified(notModified, nil, v.LastModified.Add(-behind))
		response.Write(whole, httptest.NewRequest(http.MethodGet, "/", nil), v.Describe(version.Identity, 0), v.LastModified.Add(-behind))
		if _, given := notModified.Header()["Last-Modified"]; given != want || (whole.Header().Get("Last-Modified") != "") != want {
			t.Errorf("%v before the date: 304 with %v, 200 with %v", behind, notModified.Header(), whole.Header())
		}
	}
}
