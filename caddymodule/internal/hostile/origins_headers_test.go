// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// headers are good documents with header fields that lie, or that readers must not get.
func headers() (attacks []attack) {
	digits := strings.Repeat("9", 1000)
	for _, field := range []struct {
		name   string
		values []string
	}{
		{"Set-Cookie", []string{"hunter2=1; Path=/", strings.Repeat("a", 5000)}},
		{"ETag", []string{"", `"`, `""`, `"` + strings.Repeat("e", 100_000) + `"`, "none", `W/`, `W/"`, `w/"1"`, `"a"b"`, `"a", "b"`, `"hunter2.gz"`, `*`, "\"\xff\"", "\"\x01\"", `"1"; x`, `'1'`}},
		{"Last-Modified", []string{"", "now", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 31 Feb 2025 25:61:61 GMT", "-1", digits, strings.Repeat("x", 100_000), "Thu, 01-Jan-70 00:00:00 GMT", "Thu, 01 Jan 0001 00:00:00 GMT", "2025-01-01T00:00:00Z"}},
		{"Date", []string{"", "yesterday", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", digits}},
		{"Expires", []string{"0", "-1", "never", "Thu, 01 Jan 1970 00:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 GMT", digits}},
		{"Age", []string{"-1", digits, "1.5", "x", "0, 0", "18446744073709551616"}},
		{"Cache-Control", []string{"max-age=-1", "max-age=" + digits, "max-age=1e9", "max-age", "max-age=", `max-age="60"`, "max-age=60, max-age=0", "s-maxage=x", "no-store", "private", "no-cache", "max-age=9223372036854775808", "max-age=0x10", strings.Repeat("a=b,", 20_000), `ext="` + strings.Repeat("\\", 1000), "MAX-AGE=60", "immutable, max-age=31536000", "stale-while-revalidate=" + digits}},
		{"Retry-After", []string{"-1", digits, "tomorrow", "Fri, 31 Dec 9999 23:59:59 GMT"}},
		{"RateLimit", []string{"limit=0, remaining=0, reset=" + digits, `"default";r=0;t=` + digits, "remaining=-1", "((((", strings.Repeat(`"a";r=0;t=1,`, 2000)}},
		{"X-RateLimit-Reset", []string{"-1", digits, "x"}},
		{"Content-Type", []string{"", "text/html", "text/html; charset=utf-8", "application/xhtml+xml", "image/svg+xml", "text/xml; charset=utf-7", "application/rss+xml; charset=" + strings.Repeat("x", 60_000), "text/xml; charset=\"", "application/rss+xml; charset=utf-16", "multipart/x-mixed-replace; boundary=x", "text/event-stream", "application/javascript", "text/css", "application/pdf", "application/x-shockwave-flash", "text/xml, text/html", "application/xml; a=b; a=c", "application/xslt+xml", "application/mathml+xml", "text/cache-manifest", "message/rfc822", "application/octet-stream", "*/*", "x", "text/xml;charset=\xff", strings.Repeat("text/xml;", 5000)}},
		{"Content-Disposition", []string{`attachment; filename="hunter2.exe"`}},
		{"Content-Location", []string{"http://other.test/", "file:///etc/passwd", strings.Repeat("/", 60_000)}},
		{"Content-Range", []string{"bytes 0-9/99", "bytes */*"}},
		{"Location", []string{"http://169.254.169.254/"}},
		{"Refresh", []string{"0; url=http://other.test/hunter2"}},
		{"Link", []string{"<http://other.test/>; rel=canonical", strings.Repeat("<a>; rel=preload,", 5000), `</hunter2>; rel="hub"`}},
		{"Vary", []string{"*", "Cookie", "Accept-Language, User-Agent", strings.Repeat("a,", 20_000)}},
		{"Strict-Transport-Security", []string{"max-age=31536000; includeSubDomains; preload"}},
		{"Clear-Site-Data", []string{`"*"`}},
		{"Content-Security-Policy", []string{"script-src *"}},
		{"X-Content-Type-Options", []string{"sniff"}},
		{"Access-Control-Allow-Origin", []string{"*"}},
		{"Service-Worker-Allowed", []string{"/"}},
		{"Alt-Svc", []string{`h3="evil.test:443"; ma=99999999`, "clear"}},
		{"Public-Key-Pins", []string{`pin-sha256="x"; max-age=5184000`}},
		{"Report-To", []string{`{"endpoints":[{"url":"https://evil.test/"}]}`}},
		{"SourceMap", []string{"/hunter2.map"}},
		{"Connection", []string{"close", "keep-alive, Content-Type", "Upgrade"}},
		{"Keep-Alive", []string{"timeout=" + digits}},
		{"Trailer", []string{"Content-Length", "ETag"}},
		{"Upgrade", []string{"h2c", "websocket"}},
		{"Proxy-Authenticate", []string{"Basic"}},
		{"WWW-Authenticate", []string{"Basic realm=hunter2", "Negotiate"}},
		{"Authorization", []string{"Basic aHVudGVyMg=="}},
		{"Warning", []string{`199 - "hunter2"`}},
		{"X-Accel-Redirect", []string{"/etc/passwd"}},
		{"X-Sendfile", []string{"/etc/passwd"}},
		{"IM", []string{"feed"}},
		{"Delta-Base", []string{`"1"`}},
		{"Surrogate-Control", []string{"max-age=" + digits}},
		{"Server", []string{strings.Repeat("s", 50_000)}},
		{"Via", []string{strings.Repeat("1.1 pollard, ", 3000)}},
	} {
		for _, value := range field.values {
			line := field.name + ": " + value + "\r\n"
			name := fmt.Sprintf("%s: %.40q (%d)", field.name, value, len(value))
			raw := ok(line, feed)
			if field.name == "Content-Type" {
				raw = strings.Replace(raw, "Content-Type: application/rss+xml\r\n", "", 1)
			}
			attacks = append(attacks, attack{name: name, send: says(raw), gives: feed})
		}
	}
	return attacks
}

// statuses are all that are in use, each with a feed as its body. Only 200 brings a new
// version.
func statuses() (attacks []attack) {
	list := []int{0, 99, 100, 199, 299, 399, 418, 419, 420, 430, 440, 444, 449, 450, 460, 463, 494, 495, 496, 497, 498, 499, 509, 520, 521, 522, 523, 524, 525, 526, 527, 529, 530, 561, 598, 599, 600, 783, 999}
	for status := 201; status < 600; status++ {
		if http.StatusText(status) != "" && !slices.Contains(list, status) {
			list = append(list, status)
		}
	}
	other := strings.Replace(feed, "Good", "hunter2", 1)
	for _, status := range list {
		raw := fmt.Sprintf("HTTP/1.1 %03d hunter2\r\nContent-Type: application/rss+xml\r\nETag: \"2\"\r\nCache-Control: max-age=31536000\r\nContent-Length: %d\r\n\r\n%s", status, len(other), other)
		attacks = append(attacks, attack{name: fmt.Sprintf("status %d with a feed", status), send: says(raw), slow: status >= 100 && status < 200})
	}
	for _, status := range []int{429, 503, 500, 403, 404, 410} {
		for _, after := range []string{"999999999999", "-1", "0", "1e9", "tomorrow", "Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "5, 6"} {
			attacks = append(attacks, attack{
				name: fmt.Sprintf("status %d, Retry-After: %s", status, after),
				send: says(fmt.Sprintf("HTTP/1.1 %d No\r\nRetry-After: %s\r\nContent-Length: 0\r\n\r\n", status, after)),
			})
		}
	}
	return attacks
}

// redirects lead to URLs that are not feeds, in circles, or on without end.
func redirects() (attacks []attack) {
	to := func(status int, location string) string {
		return fmt.Sprintf("HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, location)
	}
	for _, location := range []string{
		"", " ", "#", "?", ".", "..", "/", "//", "///", "////etc/passwd", "http:", "http:/", "http://", "http:///", "https://", "://x", ":", "http://:80/", "http://@/", "http://%00/", "http://x.test:99999/",
		"http://x.test:0/", "http://x.test:-1/", "http://x.test:port/", "http://[::1", "http://[::1]x/", "http://[::g]/", "http://a b/", "http://<>/", "http://x_y.test./a b", "http://..test/", "http://" + strings.Repeat("a", 64) + ".test/",
		"http://" + strings.Repeat("a.", 200) + "test/", "http://x.test/" + strings.Repeat("a", 60_000), "http://x.test/%", "http://x.test/%zz", "http://x.test/\\..\\", "http:\\\\x.test\\", "http://x.test/\x01", "http://x.test/\tHost: y", "http://x.test/%0d%0aHost:%20y",
		"file:///etc/passwd", "FILE:///etc/passwd", "ftp://x.test/", "gopher://127.0.0.1:6379/_FLUSHALL", "dict://127.0.0.1/", "ldap://127.0.0.1/", "javascript:alert(1)", "data:application/rss+xml," + feed, "mailto:a@b.test", "about:blank", "unix:/run/docker.sock", "feed:http://x.test/", "feed://x.test/", "ws://x.test/", "jar:http://x.test!/", "view-source:http://x.test/", "blob:http://x.test/", "chrome://settings", "tel:1", "urn:x", "magnet:?x",
		"http://169.254.169.254/latest/meta-data/", "http://[fd00:ec2::254]/", "http://metadata.google.internal/", "http://10.0.0.1/", "http://192.168.0.1/", "http://[::1]:22/", "http://0.0.0.0/", "http://[fe80::1%25lo]/", "http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://[::ffff:10.0.0.1]/", "http://100.100.100.200/",
		"http://user:hunter2@x.test/", "//user:hunter2@x.test/", "http://x.test@10.0.0.1/", "http://x.test#@10.0.0.1/", "http://10.0.0.1\\@x.test/",
	} {
		attacks = append(attacks, attack{name: fmt.Sprintf("302 to %.60q (%d)", location, len(location)), send: says(to(302, location)), hops: 1})
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		attacks = append(attacks,
			attack{name: fmt.Sprintf("%d to itself", status), hops: 1, send: func(v *visit) { v.say(to(status, v.r.URL.Path)) }},
			attack{name: fmt.Sprintf("%d without a Location", status), send: says(fmt.Sprintf("HTTP/1.1 %d Moved\r\nContent-Length: 0\r\n\r\n", status))},
			attack{name: fmt.Sprintf("%d with two Locations", status), hops: 1, send: says(fmt.Sprintf("HTTP/1.1 %d Moved\r\nLocation: file:///etc/passwd\r\nLocation: http://x.test/\r\nContent-Length: 0\r\n\r\n", status))},
			attack{name: fmt.Sprintf("%d ever further", status), hops: 10, send: func(v *visit) { v.say(to(status, v.r.URL.Path+"/on")) }},
			attack{name: fmt.Sprintf("%d to a feed of a body", status), hops: 1, send: func(v *visit) {
				v.say(strings.Replace(ok("Location: "+v.r.URL.Path+"\r\n", feed), "200 OK", fmt.Sprint(status, " Moved"), 1))
			}},
			attack{name: fmt.Sprintf("%d to ssh", status), send: says(to(status, "http://1.1.1.1:22/")), hops: 1},
			attack{name: fmt.Sprintf("%d to the gateway's own metadata", status), send: says(to(status, "http://169.254.169.254/hunter2")), hops: 1},
		)
	}
	two := func(a, b string) func(*visit) {
		return func(v *visit) {
			if strings.HasSuffix(v.r.URL.Path, a) {
				v.say(to(302, strings.TrimSuffix(v.r.URL.Path, a)+b))
			} else {
				v.say(to(302, v.r.URL.Path+a))
			}
		}
	}
	attacks = append(attacks,
		attack{name: "a circle of two", send: two("/a", "/b"), hops: 10},
		attack{name: "a circle by queries", hops: 10, send: func(v *visit) { v.say(to(302, v.r.URL.Path+"?"+fmt.Sprint(len(v.r.URL.RawQuery)%3))) }},
		attack{name: "ever longer queries", hops: 10, send: func(v *visit) { v.say(to(302, v.r.URL.Path+"?"+v.r.URL.RawQuery+strings.Repeat("a", 5000))) }},
		attack{name: "a circle by fragments", hops: 10, send: func(v *visit) { v.say(to(302, v.r.URL.Path+"#x")) }},
		attack{name: "a circle by letter case of the host", hops: 10, send: func(v *visit) { v.say(to(302, "HTTP://"+strings.ToUpper(v.r.Host)+v.r.URL.Path)) }},
		attack{name: "a circle by escapes", hops: 10, send: func(v *visit) {
			v.say(to(302, strings.Replace(v.r.URL.Path, "/cold", "/%63old", 1)))
		}},
		attack{name: "a chain that hangs in the end", hops: 10, slow: true, send: func(v *visit) {
			if strings.Count(v.r.URL.Path, "/on") < 5 {
				v.say(to(301, v.r.URL.Path+"/on"))
				return
			}
			v.hang()
		}},
		attack{name: "a chain of hops that each take a second", hops: 10, slow: true, send: drips("HTTP/1.1 302 Found\r\nLocation: on/\r\nContent-Length: 0", "\r\n\r\n")},
		attack{name: "cookies that a redirect wants back", hops: 1, send: func(v *visit) {
			v.say(fmt.Sprintf("HTTP/1.1 302 Found\r\nSet-Cookie: hunter2=1\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", v.r.URL.Path))
		}},
		attack{name: "a redirect of 100 KB", hops: 1, send: says(to(302, "http://x.test/"+strings.Repeat("a", 100<<10)))},
		attack{name: "a redirect above the header's limit", hops: 1, send: says(to(302, "http://x.test/"+strings.Repeat("a", 200<<10)))},
		attack{name: "from http to https of no server", hops: 1, send: func(v *visit) { v.say(to(302, "https://"+v.r.Host+v.r.URL.Path)) }},
		attack{name: "300 with a choice", send: says(to(300, "/other"))},
		attack{name: "305 to a proxy", send: says(to(305, "http://proxy.test/"))},
		attack{name: "306 to a proxy", send: says(to(306, "http://proxy.test/"))},
		attack{name: "304 with a Location", send: says(to(304, "/other"))},
		attack{name: "201 with a Location", send: says(to(201, "/other"))},
	)
	return attacks
}
