// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

const odd = `W/"a--gzip"`

// unless returns what was seen, unless a condition holds.
func unless(holds bool, format string, args ...any) string {
	if holds {
		return ""
	}
	return fmt.Sprintf(format, args...)
}

// keeps is a check that readers keep the last good version when the site answers so.
func keeps(a answer) func(f *feed) string {
	return func(f *feed) string {
		f.get()
		f.answers(always(a))
		for range 3 {
			f.later()
		}
		g := f.get()
		return unless(g.has("first"), "%v", g)
	}
}

// ofReaders are what readers get.
var ofReaders = []row{
	{"readers", "an ETag, also if the site gives none", "RFC 9110 8.8.3", func(f *feed) string {
		g := f.get()
		return unless(g.Header.Get("ETag") != "", "none")
	}},
	{"readers", "a Last-Modified, also if the site gives none", "RFC 9110 8.8.2", func(f *feed) string {
		g := f.get()
		return unless(g.Header.Get("Last-Modified") != "", "none")
	}},
	{"readers", "304 for the ETag", "RFC 9110 13.1.2", tagged(func(f *feed, tag string) string {
		g := f.get("If-None-Match", tag)
		return unless(g.Status == 304 && g.Body == "", "%v", g)
	})},
	{"readers", "304 for the ETag as a weak one, in a list, and for *", "RFC 9110 13.1.2", tagged(func(f *feed, tag string) string {
		for _, list := range []string{"W/" + strings.TrimPrefix(tag, "W/"), `"x, y", ` + tag, `"x" ,` + tag + `,`, "*"} {
			if g := f.get("If-None-Match", list); g.Status != 304 {
				return fmt.Sprintf("%v for %s", g, list)
			}
		}
		return ""
	})},
	{"readers", "304 for the ETag in whatever coding is asked for", "RFC 9110 8.8.3.3", func(f *feed) string {
		f.answers(always(ok(rss("first"), "ETag", `"a"`)))
		f.get()
		tag := f.get("Accept-Encoding", "gzip").Header.Get("ETag")
		if tag == "" {
			return "no ETag"
		}
		g := f.get("If-None-Match", tag)
		return unless(g.Status == 304, "%v", g)
	}},
	{"readers", "304 for the date that they were given", "RFC 9110 13.1.3", func(f *feed) string {
		f.answers(always(ok(rss("first"), "Last-Modified", "Fri, 27 Nov 2026 10:00:00 GMT")))
		date := f.get().Header.Get("Last-Modified")
		if date == "" {
			return "no date"
		}
		g := f.get("If-Modified-Since", date)
		return unless(g.Status == 304, "%v", g)
	}},
	{"readers", "304 if the ETag is right, whatever the date", "RFC 9110 13.2.2", tagged(func(f *feed, tag string) string {
		g := f.get("If-None-Match", tag, "If-Modified-Since", "Thu, 01 Jan 2015 00:00:00 GMT")
		return unless(g.Status == 304, "%v", g)
	})},
	{"readers", "200 if the ETag is another, whatever the date", "RFC 9110 13.2.2", func(f *feed) string {
		f.answers(always(ok(rss("first"), "ETag", `"a"`, "Last-Modified", "Fri, 27 Nov 2026 10:00:00 GMT")))
		date := f.get().Header.Get("Last-Modified")
		g := f.get("If-None-Match", `"other"`, "If-Modified-Since", date)
		return unless(g.has("first"), "%v", g)
	}},
	{"readers", "a 304 with the ETag and the Cache-Control of the 200", "RFC 9110 15.4.5", func(f *feed) string {
		f.answers(always(ok(rss("first"), "ETag", `"a"`, "Cache-Control", "max-age=3600")))
		f.get()
		whole := f.get()
		g := f.get("If-None-Match", whole.Header.Get("ETag"))
		for _, name := range []string{"ETag", "Cache-Control", "Vary"} {
			if whole.Header.Get(name) != "" && g.Header.Get(name) == "" {
				return "no " + name
			}
		}
		return unless(g.Status == 304 && g.Header.Get("ETag") != "", "%v", g)
	}},
	{"readers", "gzip if they accept it, and not otherwise", "RFC 9110 12.5.3", func(f *feed) string {
		f.get()
		for accepted, want := range map[string]string{"gzip": "gzip", "br, gzip;q=0.5": "gzip", "": "", "gzip;q=0": "", "identity": ""} {
			g := f.get("Accept-Encoding", accepted)
			if g.Header.Get("Content-Encoding") != want || !g.has("first") {
				return fmt.Sprintf("%q for %q", g.Header.Get("Content-Encoding"), accepted)
			}
		}
		return ""
	}},
	{"readers", "an ETag of its own, or a weak one, with gzip", "RFC 9110 8.8.3.3", tagged(func(f *feed, tag string) string {
		g := f.get("Accept-Encoding", "gzip")
		packed := g.Header.Get("ETag")
		return unless(packed != "" && (packed != tag || strings.HasPrefix(tag, "W/")), "%s, and %s without", packed, tag)
	})},
	{"readers", "Vary: Accept-Encoding with each coding", "RFC 9110 12.5.5", func(f *feed) string {
		f.get()
		for _, accepted := range []string{"gzip", "identity"} {
			if vary := f.get("Accept-Encoding", accepted).Header.Get("Vary"); !strings.Contains(strings.ToLower(vary), "accept-encoding") {
				return fmt.Sprintf("%q with %s", vary, accepted)
			}
		}
		return ""
	}},
	{"readers", "HEAD with the fields of GET and no body", "RFC 9110 9.3.2", func(f *feed) string {
		f.answers(always(ok(rss("first"), "ETag", `"a"`)))
		f.get()
		whole, g := f.get(), f.send("HEAD")
		for _, name := range []string{"ETag", "Content-Type", "Content-Length"} {
			if whole.Header.Get(name) != g.Header.Get(name) {
				return fmt.Sprintf("%s %q and %q", name, whole.Header.Get(name), g.Header.Get(name))
			}
		}
		return unless(g.Status == 200 && g.Body == "", "%v", g)
	}},
	{"readers", "405 or 501 for a POST, which the site does not see", "RFC 9110 15.5.6", func(f *feed) string {
		f.get()
		g := f.send("POST")
		for _, p := range f.polls() {
			if p.Method == "POST" {
				return "the site saw it"
			}
		}
		return unless(g.Status == 405 || g.Status == 501, "%v", g)
	}},
	{"readers", "no Set-Cookie of the site's", "RFC 6265 3", func(f *feed) string {
		f.answers(always(ok(rss("first"), "Set-Cookie", "id=1", "ETag", `"a"`)))
		f.get()
		g := f.get()
		return unless(g.has("first") && g.Header.Get("Set-Cookie") == "", "%v, Set-Cookie %q", g, g.Header.Get("Set-Cookie"))
	}},
	{"readers", "a new version with another ETag", "RFC 9110 8.8.3", func(f *feed) string {
		f.answers(always(ok(rss("first"), "ETag", `"a"`)))
		f.get()
		tag := f.get().Header.Get("ETag")
		f.answers(always(ok(rss("second"), "ETag", `"b"`)))
		f.later()
		f.later()
		g := f.get("If-None-Match", tag)
		return unless(tag != "" && g.has("second") && g.Header.Get("ETag") != tag, "%v", g)
	}},
	{"readers", "304 if only a build date has changed", "", func(f *feed) string {
		f.answers(func(n int, _ *http.Request) answer {
			date := time.Date(2026, time.November, 27, 10, 0, n, 0, time.UTC).Format(time.RFC1123)
			return ok(rss("first", "<lastBuildDate>"+date+"</lastBuildDate>"), "ETag", fmt.Sprintf(`"%d"`, n))
		})
		tag := f.get().Header.Get("ETag")
		f.later()
		f.later()
		g := f.get("If-None-Match", tag)
		return unless(g.Status == 304, "%v", g)
	}},
	{"readers", "the last version at once while the site takes its time", "RFC 5861 3", func(f *feed) string {
		f.get()
		f.answers(func(int, *http.Request) answer { time.Sleep(8 * f.interval); return ok(rss("second")) })
		time.Sleep(f.interval * 5 / 4)
		asked := time.Now()
		g := f.get()
		took := time.Since(asked)
		return unless(g.has("first") && took < 4*f.interval, "%v after %v", g, took.Round(time.Second))
	}},
	{"readers", "the last good version while the site answers 500", "RFC 5861 4", keeps(answer{status: 500, body: "error"})},
	{"readers", "the same while it answers 404, 403 or 410", "", func(f *feed) string {
		f.get()
		for _, status := range []int{404, 403, 410} {
			f.answers(always(answer{status: status, body: "error"}))
			f.later()
			f.later()
			if g := f.get(); !g.has("first") {
				return g.String()
			}
		}
		return ""
	}},
	{"readers", "the same while it sends a page with 200", "", keeps(ok("<!DOCTYPE html><title>Maintenance</title>", "Content-Type", "text/html"))},
	{"readers", "the same if the document breaks off", "RFC 9112 8", keeps(answer{status: 200, body: rss("second")[:900], breaksOff: true})},
	{"readers", "the same for a body with nothing in it", "", keeps(ok(""))},
	{"readers", "502, 503 or 504 if there never was a version", "", func(f *feed) string {
		f.answers(always(answer{status: 500, body: "error"}))
		g := f.get()
		return unless(g.Status >= 502 && g.Status <= 504, "%v", g)
	}},
	{"readers", "a Retry-After with that", "RFC 9110 10.2.3", func(f *feed) string {
		f.answers(always(answer{status: 500, body: "error"}))
		return unless(f.get().Header.Get("Retry-After") != "", "none")
	}},
}

// tagged is a check with the ETag that a reader got.
func tagged(check func(f *feed, tag string) string) func(f *feed) string {
	return func(f *feed) string {
		f.answers(always(ok(rss("first"), "ETag", `"a"`)))
		f.get()
		tag := f.get().Header.Get("ETag")
		if tag == "" {
			return "no ETag"
		}
		return check(f, tag)
	}
}
