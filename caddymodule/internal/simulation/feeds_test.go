// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/internal/origintest"
)

// soundFeeds are feeds of good servers. Their validators, URLs and codings differ.
func soundFeeds() []*resource {
	constant := func(text string) func(*call) string { return func(*call) string { return text } }
	versioned := func(format string) func(*call) string {
		return func(c *call) string { return fmt.Sprintf(format, c.version()) }
	}
	return []*resource{
		{url: "http://plain.test/feed.xml", target: true},
		{url: "http://tag.test/feed", date: constant("")},
		{url: "http://date.test/feed", etag: constant("")},
		{url: "http://weak.test/Feed%2Fx?b=2&a=1&&c", etag: versioned(`W/"%d"`)},
		{url: "http://bare.test/feed?", etag: versioned(`unquoted-%d`)},
		{url: "http://latin.test/caf%e9.xml", etag: versioned("\"caf\xe9-%d\"")},
		{url: "http://odd.test/~x/a//b", date: versioned("Mon, %d mar 26 10:00:00 +0000")},
		{url: "https://example.com/feed.xml"},
		{url: "http://json.test/feed.json", format: origintest.JSONFeed},
		{url: "http://atom.test/?feed=atom", format: origintest.Atom},
		{url: "http://gzip.test/feed", coding: []string{"gzip"}},
		{url: "http://brotli.test/feed", coding: []string{"br"}},
		{url: "http://zstd.test/feed", coding: []string{"zstd"}},
		{url: "http://twice.test/feed", coding: []string{"gzip", "gzip"}},
		{url: "http://cookie.test/feed", header: []string{"Set-Cookie", "id=1; Path=/", "Vary", "*", "Set-Cookie", "b=2"}},
		{url: "http://slow.test/feed", slow: func(c *call) time.Duration {
			return []time.Duration{0, 2 * time.Second, 12 * time.Second, 28 * time.Second, 45 * time.Second}[c.n%5]
		}},
	}
}

// hintedFeeds say when they want to be polled.
func hintedFeeds() []*resource {
	control := func(value string) []string { return []string{"Cache-Control", value} }
	none := func(*call) string { return "" }
	skip := func(names string, element string) string { return "<" + element + ">" + names + "</" + element + ">" }
	return []*resource{
		{url: "http://age600.test/feed", header: control("max-age=600")},
		{url: "http://age3h.test/feed", header: control("public, max-age=10800"), wait: 3 * time.Hour},
		{url: "http://age10d.test/feed", header: control("max-age=864000"), wait: day},
		{url: "http://age304.test/feed", header: control("max-age=7200"), on304: control("max-age=18000"), wait: 2 * time.Hour, wait304: 5 * time.Hour},
		{url: "http://silent304.test/feed", header: control("max-age=14400"), on304: []string{}, wait: 4 * time.Hour},
		{url: "http://expires.test/feed", header: []string{"Expires", "{in 6h}"}, wait: 6 * time.Hour},
		{url: "http://shared.test/feed", header: append(control("max-age=60, s-maxage=7200"), "Age", "1800"), wait: 90 * time.Minute},
		{url: "http://nocache.test/feed", header: control("no-cache, no-store, must-revalidate")},
		{url: "http://ttl180.test/feed", channel: "<ttl>180</ttl>", wait: 3 * time.Hour},
		{url: "http://ttl5.test/feed", channel: "<ttl>5</ttl>"},
		{url: "http://ttl7d.test/feed", channel: "<ttl>10080</ttl>", wait: day},
		{url: "http://sy.test/feed", channel: "<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>4</sy:updateFrequency>", wait: 6 * time.Hour},
		{url: "http://night.test/feed", channel: skip("<hour>0</hour><hour>1</hour><hour>2</hour><hour>3</hour><hour>4</hour><hour>5</hour>", "skipHours"), hours: []int{0, 1, 2, 3, 4, 5}},
		{url: "http://evening.test/feed", channel: skip("<hour>20</hour><hour>21</hour><hour>22</hour><hour>23</hour><hour>24</hour>", "skipHours"), hours: []int{20, 21, 22, 23, 0}, instead: answering(503, 5*time.Hour, 9*time.Hour)},
		{url: "http://sabbath.test/feed", channel: skip("<day>Saturday</day><day>sunday</day>", "skipDays"), days: []time.Weekday{time.Saturday, time.Sunday}},
		{url: "http://unvalidated.test/feed", etag: none, date: none, wait: day},
		{url: "http://fresh.test/feed", etag: none, date: none, header: control("max-age=3600")},
		{url: "http://daily.test/feed", dated: true, every: day, wait: 2 * time.Hour},
		{url: "http://noisy.test/feed", noisy: true, never304: true, etag: func(c *call) string { return fmt.Sprintf(`"%d"`, c.n) }, date: none},
		{url: "http://limit.test/feed", header: []string{"X-RateLimit-Remaining", "0.0", "X-RateLimit-Reset", "9000"}, wait: 9000 * time.Second, retryAfter: 9000 * time.Second, pause: 9000 * time.Second},
		{url: "http://draft.test/feed", header: []string{"RateLimit", `"d";r=0;t=7200`}, retryAfter: 2 * time.Hour, pause: 2 * time.Hour},
		{url: "http://later.test/feed", header: []string{"Retry-After", "14400"}, retryAfter: 4 * time.Hour},
	}
}

// brokenFeeds are feeds of servers that fail or answer wrongly.
func brokenFeeds() []*resource {
	none := func(*call) string { return "" }
	same := func(*call) string { return `"same"` }
	numbered := func(c *call) string { return fmt.Sprintf(`"%d"`, c.n) }
	return []*resource{
		{url: "http://apache.test/feed", ignoresETag: true, every: 3 * day, etag: func(c *call) string { return fmt.Sprintf(`"%d-gzip"`, c.version()) }},
		{url: "http://deaf.test/feed", never304: true, every: 60 * day, etag: same, date: none},
		{url: "http://stuck.test/feed", doubted: true, every: 60 * day, etag: same, date: none},
		{url: "http://unasked.test/feed", instead: func(c *call) (reply, bool) {
			return reply{status: 304, wait: day}, c.age < 3*day
		}},
		{url: "http://five.test/feed", instead: answering(500, 20*time.Hour, 40*time.Hour)},
		{url: "http://busy.test/feed", instead: answering(503, 4*time.Hour, 30*time.Hour, "Retry-After", "7200")},
		{url: "http://flap.test/feed", instead: answering(404, 2*time.Hour, 5*time.Hour)},
		{url: "http://denied.test/feed", instead: answering(403, 30*time.Hour, 70*time.Hour)},
		{url: "http://gone.test/feed", instead: func(c *call) (reply, bool) {
			return reply{status: 410, gone: true}, c.age > 5*day
		}},
		{url: "http://login.test/feed", instead: page(200, "text/html", "<!DOCTYPE html><html><body>Log in<script>alert(1)</script></body></html>", 40*time.Hour, 80*time.Hour)},
		{url: "http://rss-login.test/feed", instead: page(200, "application/rss+xml", "<html><head><title>Just a moment</title></head></html>", 3*time.Hour, 7*time.Hour)},
		{url: "http://empty.test/feed", instead: page(200, "application/rss+xml", "", 3*time.Hour, 8*time.Hour)},
		{url: "http://childless.test/feed", instead: childless},
		{url: "http://cut.test/feed", noisy: true, never304: true, etag: numbered, date: none, instead: func(c *call) (reply, bool) {
			a := c.usual()
			if a.status == 200 && c.n > 0 {
				a.good, a.cut = false, true
				a.set("Content-Length", fmt.Sprint(len(a.body)))
			}
			return a, c.n%4 == 1
		}},
		{url: "http://torn.test/feed", coding: []string{"gzip"}, noisy: true, never304: true, etag: numbered, date: none, instead: func(c *call) (reply, bool) {
			a := c.usual()
			a.good, a.cut = false, true // chunked
			return a, c.n%4 == 2
		}},
		{url: "http://partial.test/feed", instead: page(206, "application/rss+xml", `<rss version="2.0"><channel><title>Part`, 6*time.Hour, 20*time.Hour)},
		{url: "http://hangup.test/feed", instead: func(c *call) (reply, bool) { return reply{drop: true}, c.n%3 == 1 }},
		{url: "http://wait.test/feed", instead: tooMany},
		{url: "http://baretoo.test/feed", instead: failingWith(reply{status: 429, pause: time.Hour}, 3*time.Hour, 9*time.Hour)},
	}
}

// answering answers with a status for so long in each period. A Retry-After in seconds is
// what the answer asks for.
func answering(status int, long, period time.Duration, header ...string) func(*call) (reply, bool) {
	a := reply{status: status}
	for i := 0; i < len(header); i += 2 {
		a.set(header[i], header[i+1])
		if seconds, err := time.ParseDuration(header[i+1] + "s"); err == nil {
			a.retryAfter, a.pause = seconds, seconds
		}
	}
	return failingWith(a, long, period)
}

func failingWith(a reply, long, period time.Duration) func(*call) (reply, bool) {
	return func(c *call) (reply, bool) {
		// The first day and the last two are good, and each feed begins at another hour.
		since := (c.age + time.Duration(len(c.url))*time.Hour) % period
		return a, c.age > day && c.age < simulated-2*day && since < long
	}
}

// childless answers with a feed that has no entries, at times.
func childless(c *call) (reply, bool) {
	const body = `<rss version="2.0"><channel><title>T</title></channel></rss>`
	a, now := page(200, "application/rss+xml", body, 20*time.Hour, 50*time.Hour)(c)
	a.empty, a.plain, a.validators = true, []byte(body), validators{`"page"`, "Mon, 01 Jan 2024 00:00:00 GMT"}
	return a, now
}

func page(status int, kind, body string, long, period time.Duration) func(*call) (reply, bool) {
	a := reply{status: status, body: []byte(body)}
	a.set("Content-Type", kind)
	a.set("Etag", `"page"`)
	a.set("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
	return failingWith(a, long, period)
}

// tooMany answers every other request with a 429, whose Retry-After has another form each time.
func tooMany(c *call) (reply, bool) {
	// The origin's clock is 3 h slow.
	clock := c.now.Add(-3 * time.Hour).UTC()
	forms := []struct {
		values []string
		wait   time.Duration
	}{
		{[]string{"5400"}, 5400 * time.Second},
		{[]string{"abc"}, 0},
		{[]string{"0"}, 0},
		{[]string{clock.Add(4 * time.Hour).Format(http.TimeFormat)}, 4 * time.Hour},
		{[]string{"-5"}, 0},
		{[]string{clock.Add(5 * time.Hour).Format("Monday, 02-Jan-06 15:04:05 GMT")}, 5 * time.Hour},
		{[]string{""}, 0},
		{[]string{clock.Add(3 * time.Hour).Format(time.ANSIC)}, 3 * time.Hour},
		{[]string{"7200", "10800"}, 3 * time.Hour},
		{[]string{clock.Add(-time.Hour).Format(http.TimeFormat)}, 0},
		{[]string{"3600.5"}, 3601 * time.Second},
		{[]string{"14400", "soon"}, 4 * time.Hour},
		{[]string{"36000"}, 10 * time.Hour},
	}
	form := forms[c.n/2%len(forms)]
	a := reply{status: 429, retryAfter: form.wait, pause: max(form.wait, time.Hour)}
	if form.wait > 0 {
		a.pause = form.wait
	}
	for _, value := range form.values {
		a.header = append(a.header, [2]string{"Retry-After", value})
	}
	a.set("Date", clock.Format(http.TimeFormat))
	return a, c.n%2 == 1 && c.age < simulated-2*day
}
