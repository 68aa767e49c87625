// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"
)

// quiet is how many intervals a program has to keep still that was asked to.
const quiet = 4

// keepsStill is a check that a program does not ask again for some intervals after such an answer.
func keepsStill(a answer) func(f *feed) string {
	return func(f *feed) string {
		f.answers(always(a))
		f.get()
		n := f.during(quiet)
		return unless(n == 0, "%d requests in %d intervals", n, quiet)
	}
}

// keepsStillAfter is the same if there was a good version before.
func keepsStillAfter(a answer) func(f *feed) string {
	return func(f *feed) string {
		f.get()
		f.answers(always(a))
		f.later()
		if len(f.polls()) < 2 {
			f.later()
		}
		n := f.during(quiet)
		return unless(n == 0, "%d requests in %d intervals", n, quiet)
	}
}

// sends is a check of the second request at the site, after an answer.
func sends(a answer, check func(r seen) string) func(f *feed) string {
	return func(f *feed) string {
		f.answers(always(a))
		f.get()
		f.later()
		f.later()
		polls := f.polls()
		if len(polls) < 2 {
			return "no second request"
		}
		return check(polls[1])
	}
}

// field is a check that a request has a field with a value; empty: not at all.
func field(name, want string) func(r seen) string {
	return func(r seen) string {
		return unless(r.Header.Get(name) == want, "%s: %s", name, r.Header.Get(name))
	}
}

// mostly is how many requests in some intervals a site may see that fails: without growing pauses it is one in each.
const mostly = 6

// ofSites are what sites see.
var ofSites = []row{
	{"sites", "one request for 30 readers at the same time", "", func(f *feed) string {
		f.answers(func(int, *http.Request) answer { time.Sleep(f.interval / 8); return ok(rss("first")) })
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() { f.get() })
		}
		wg.Wait()
		return unless(len(f.polls()) <= f.allowed(), "%d", len(f.polls()))
	}},
	{"sites", "the same while they answer 500", "", func(f *feed) string {
		f.answers(func(int, *http.Request) answer { time.Sleep(f.interval / 8); return answer{status: 500, body: "error"} })
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() { f.get() })
		}
		wg.Wait()
		return unless(len(f.polls()) <= f.allowed(), "%d", len(f.polls()))
	}},
	{"sites", "one request in an interval, whatever readers send", "RFC 9111 4", func(f *feed) string {
		f.get()
		for _, header := range [][]string{
			{"Cache-Control", "no-cache"}, {"Cache-Control", "max-age=0"}, {"Pragma", "no-cache"}, {"Accept-Encoding", "gzip"}, {"Accept-Encoding", "br"},
			{"User-Agent", "Other/2"}, {"Accept", "*/*"}, {"Cookie", "a=b"}, {"If-None-Match", `"x"`},
		} {
			f.get(header...)
			if n := len(f.polls()); n > f.allowed() {
				return fmt.Sprintf("%d after %s: %s", n, header[0], header[1])
			}
		}
		f.send("HEAD")
		return unless(len(f.polls()) <= f.allowed(), "%d after HEAD", len(f.polls()))
	}},
	{"sites", "only GET", "", func(f *feed) string {
		f.send("HEAD")
		f.get()
		for _, p := range f.polls() {
			if p.Method != "GET" {
				return p.Method
			}
		}
		return ""
	}},
	{"sites", "If-None-Match, byte for byte", "RFC 9110 13.1.2", sends(ok(rss("first"), "ETag", odd), field("If-None-Match", odd))},
	{"sites", "If-Modified-Since, byte for byte", "RFC 9110 13.1.3",
		sends(ok(rss("first"), "Last-Modified", "Fri, 27 nov 2026 10:00:00 +0000"), field("If-Modified-Since", "Fri, 27 nov 2026 10:00:00 +0000"))},
	{"sites", "both, if they gave both", "RFC 9110 13.1.3", sends(ok(rss("first"), "ETag", odd, "Last-Modified", "Fri, 27 Nov 2026 10:00:00 GMT"), func(r seen) string {
		return field("If-None-Match", odd)(r) + field("If-Modified-Since", "Fri, 27 Nov 2026 10:00:00 GMT")(r)
	})},
	{"sites", "no condition that they did not give", "", sends(ok(rss("first")), func(r seen) string {
		return field("If-None-Match", "")(r) + field("If-Modified-Since", "")(r)
	})},
	{"sites", "the condition still after an error", "", func(f *feed) string {
		f.answers(func(n int, _ *http.Request) answer {
			if n == 1 {
				return answer{status: 500, body: "error"}
			}
			return ok(rss("first"), "ETag", odd)
		})
		f.get()
		f.during(6)
		polls := f.polls()
		if len(polls) < 3 {
			return "no third request"
		}
		return field("If-None-Match", odd)(polls[2])
	}},
	{"sites", "that of the feed still after a page with 200", "", func(f *feed) string {
		f.answers(func(n int, _ *http.Request) answer {
			if n == 1 {
				return ok("<!DOCTYPE html><title>Maintenance</title>", "Content-Type", "text/html", "ETag", `"page"`)
			}
			return ok(rss("first"), "ETag", odd)
		})
		f.get()
		f.during(6)
		polls := f.polls()
		if len(polls) < 3 {
			return "no third request"
		}
		return field("If-None-Match", odd)(polls[2])
	}},
	{"sites", "no condition after a 412", "RFC 9110 15.5.13", func(f *feed) string {
		f.answers(func(_ int, r *http.Request) answer {
			if r.Header.Get("If-None-Match") != "" {
				return answer{status: 412}
			}
			return ok(rss("first"), "ETag", odd)
		})
		f.get()
		f.during(6)
		polls := f.polls()
		if len(polls) < 3 {
			return "no third request"
		}
		return field("If-None-Match", "")(polls[2])
	}},
	{"sites", "the validators of one answer only", "", func(f *feed) string {
		f.answers(func(n int, _ *http.Request) answer {
			if n == 0 {
				return ok(rss("first"), "Last-Modified", "Fri, 27 Nov 2026 10:00:00 GMT")
			}
			return ok(rss("second"), "ETag", odd)
		})
		f.get()
		for range 3 {
			f.later()
		}
		polls := f.polls()
		if len(polls) < 3 {
			return "no third request"
		}
		return field("If-None-Match", odd)(polls[2]) + field("If-Modified-Since", "")(polls[2])
	}},
	{"sites", "that gzip is accepted", "RFC 9110 12.5.3", func(f *feed) string {
		f.get()
		return unless(strings.Contains(f.polls()[0].Header.Get("Accept-Encoding"), "gzip"), "%q", f.polls()[0].Header.Get("Accept-Encoding"))
	}},
	{"sites", "nothing of a reader", "", func(f *feed) string {
		private := []string{
			"Cookie", "a=b", "Referer", "https://reader.example/", "Authorization", "Basic YTpi", "Accept-Language", "tlh", "Range", "bytes=0-1", "DNT", "1", "Forwarded", "for=192.0.2.7",
		}
		f.get(private...)
		for _, p := range f.polls() {
			for i := 0; i < len(private); i += 2 {
				if strings.Contains(p.Header.Get(private[i]), private[i+1]) {
					return private[i]
				}
			}
			for _, name := range []string{"X-Forwarded-For", "X-Real-Ip"} {
				if p.Header.Get(name) != "" {
					return name
				}
			}
			if strings.Contains(p.UserAgent(), "Reader/") {
				return "User-Agent"
			}
		}
		return ""
	}},
	{"sites", "a User-Agent with an address to ask at", "RFC 9110 10.1.5", func(f *feed) string {
		f.get()
		agent := f.polls()[0].UserAgent()
		return unless(strings.Contains(agent, "+http") || strings.Contains(agent, "@"), "%q", agent)
	}},
	{"sites", "nothing while max-age lasts", "RFC 9111 4.2", keepsStill(ok(rss("first"), "Cache-Control", "max-age=3600"))},
	{"sites", "nothing while Expires lasts", "RFC 9111 5.3", func(f *feed) string {
		return keepsStill(ok(rss("first"), "Expires", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)))(f)
	}},
	{"sites", "nothing while the max-age of a 304 lasts", "RFC 9111 4.3.4", func(f *feed) string {
		f.answers(func(n int, r *http.Request) answer {
			if n > 0 && r.Header.Get("If-None-Match") == odd {
				return answer{status: 304, header: []string{"ETag", odd, "Cache-Control", "max-age=3600"}}
			}
			return ok(rss("first"), "ETag", odd)
		})
		f.get()
		f.later()
		f.later()
		n := f.during(quiet)
		return unless(n == 0, "%d requests in %d intervals", n, quiet)
	}},
	{"sites", "nothing while ttl lasts", "RSS 2.0", keepsStill(ok(rss("first", "<ttl>60</ttl>")))},
	{"sites", "nothing while sy:updatePeriod lasts", "RSS 1.0 syndication",
		keepsStill(ok(rss("first", `<sy:updatePeriod xmlns:sy="http://purl.org/rss/1.0/modules/syndication/">daily</sy:updatePeriod>`)))},
	{"sites", "nothing in skipDays", "RSS 2.0", func(f *feed) string {
		var days strings.Builder
		for d := range 6 { // all but yesterday
			fmt.Fprintf(&days, "<day>%s</day>", time.Now().UTC().AddDate(0, 0, d).Weekday())
		}
		return keepsStill(ok(rss("first", "<skipDays>"+days.String()+"</skipDays>")))(f)
	}},
	{"sites", "nothing in skipHours", "RSS 2.0", func(f *feed) string {
		var hours strings.Builder
		for h := range 23 { // all but the one before this
			fmt.Fprintf(&hours, "<hour>%d</hour>", (time.Now().UTC().Hour()+h)%24)
		}
		return keepsStill(ok(rss("first", "<skipHours>"+hours.String()+"</skipHours>")))(f)
	}},
	{"sites", "nothing until Retry-After of a 429", "RFC 6585 4", keepsStillAfter(answer{status: 429, header: []string{"Retry-After", "3600"}})},
	{"sites", "nothing until Retry-After of a 503", "RFC 9110 10.2.3", keepsStillAfter(answer{status: 503, header: []string{"Retry-After", "3600"}})},
	{"sites", "the same if that is a date", "RFC 9110 10.2.3", func(f *feed) string {
		return keepsStillAfter(answer{status: 503, header: []string{"Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)}})(f)
	}},
	{"sites", "nothing until Retry-After of a 404", "RFC 9110 10.2.3", keepsStillAfter(answer{status: 404, header: []string{"Retry-After", "3600"}})},
	{"sites", "nothing for a while after a 429 without a time", "RFC 6585 4", keepsStillAfter(answer{status: 429})},
	{"sites", "nothing while a rate limit is used up", "draft RateLimit", keepsStillAfter(ok(rss("first"), "X-RateLimit-Remaining", "0", "X-RateLimit-Reset", "3600"))},
	{"sites", "nothing after a 410", "RFC 9110 15.5.11", keepsStillAfter(answer{status: 410})},
	{"sites", "pauses that grow while they answer 404", "", rarer(answer{status: 404})},
	{"sites", "pauses that grow while they answer 500", "", rarer(answer{status: 500})},
	{"sites", "pauses that grow while they close connections", "", rarer(answer{closes: true})},
	{"sites", "the old address seldom after a 301", "RFC 9110 15.4.2", moved(301)},
	{"sites", "the same after a 308", "RFC 9110 15.4.9", moved(308)},
	{"sites", "a 302 followed, each time", "RFC 9110 15.4.3", elsewhere(302)},
	{"sites", "a 307 followed, each time", "RFC 9110 15.4.8", elsewhere(307)},
	{"sites", "an end of redirects in a circle", "RFC 9110 15.4", func(f *feed) string {
		f.answers(func(int, *http.Request) answer { return answer{status: 302, header: []string{"Location", f.path}} })
		g := f.get()
		n := len(f.polls())
		return unless(n <= 20, "%d requests, and readers get %v", n, g)
	}},
}

// rarer is a check that a site that goes on failing is asked ever more rarely.
func rarer(a answer) func(f *feed) string {
	return func(f *feed) string {
		f.get()
		f.answers(always(a))
		n := f.during(mostly)
		return unless(n <= mostly/2, "%d requests in %d intervals", n, mostly)
	}
}

// moved is a check that a feed which has moved for good is asked for at its new address.
func moved(status int) func(f *feed) string {
	return func(f *feed) string {
		f.answers(redirecting(status, f.path+"/new"))
		f.get()
		f.during(quiet)
		g, old := f.get(), f.atOwnAddress()
		return unless(old <= 2 && g.has("first"), "%d times, and readers get %v", old, g)
	}
}

// elsewhere is a check that a feed which is elsewhere for now is still asked for at its own address.
func elsewhere(status int) func(f *feed) string {
	return func(f *feed) string {
		f.answers(redirecting(status, f.path+"/new"))
		g := f.get()
		f.later()
		f.later()
		old := f.atOwnAddress()
		return unless(old >= 2 && g.has("first"), "%d times, and readers get %v", old, g)
	}
}

// atOwnAddress returns how many requests the site saw that were not for the target of a redirect.
func (f *feed) atOwnAddress() (n int) {
	for _, p := range f.polls() {
		if p.below == "" {
			n++
		}
	}
	return n
}

// redirecting answers with a redirect, and at its target with a feed.
func redirecting(status int, target string) func(int, *http.Request) answer {
	return func(_ int, r *http.Request) answer {
		if r.URL.Path == target {
			return ok(rss("first"))
		}
		return answer{status: status, header: []string{"Location", target}}
	}
}
