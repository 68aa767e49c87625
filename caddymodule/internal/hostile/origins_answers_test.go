// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/feedpollard/pollard/internal/origintest"
)

// Package upstream has tests of malformed answers, statuses, codings, redirects and TLS. These attacks are what
// only a whole process shows: its memory and time, and what its readers get.

// stalls are answers that stop, in each way, at places where an answer can stop.
func stalls() (attacks []attack) {
	length, gz := "Content-Length: "+strconv.Itoa(len(feed))+"\r\n", origintest.Encode(feed, "gzip")
	for _, place := range []struct{ name, said, rest, whole string }{
		{"the status line", "", ok("", feed), ""},
		{"a field's value", "HTTP/1.1 200 OK\r\nContent-Type: text/", "xml\r\n\r\n", ""},
		{"the answer after an interim one", "HTTP/1.1 102 Processing\r\n\r\n", ok("", feed), ""},
		{"a body", open(length, feed[:50]), feed[50:], ""},
		{"a body's last byte", open(length, feed[:len(feed)-1]), feed[len(feed)-1:], ""},
		{"a chunk", chunked("", fmt.Sprintf("%x\r\n%s", len(feed), feed[:50])), feed[50:], ""},
		// Here the document has ended, whatever becomes of the answer.
		{"the last chunk", chunked("", chunk(feed)), "0\r\n\r\n", feed},
		{"gzip's checksum", open("Content-Encoding: gzip\r\nContent-Length: "+strconv.Itoa(len(gz))+"\r\n", gz[:len(gz)-4]), gz[len(gz)-4:], feed},
	} {
		attacks = append(attacks,
			attack{name: "closes before " + place.name, send: says(place.said), gives: place.whole},
			attack{name: "hangs before " + place.name, send: hangs(place.said), slow: true},
			attack{name: "resets before " + place.name, send: resets(place.said), gives: place.whole},
			// The last bytes come in time.
			attack{name: "drips from " + place.name, send: drips(place.said, place.rest), slow: true, gives: feed},
		)
	}
	return attacks
}

// endlessAnswers have no end, in each part that can be without one.
func endlessAnswers() (attacks []attack) {
	for _, a := range []struct{ name, said, piece string }{
		{"fields", "HTTP/1.1 200 OK\r\n", "X: y\r\n"},
		{"interim answers 103", "", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"},
		{"body without a length", open("", ""), feed},
		{"body of items", open("", "<rss version='2.0'><channel>"), "<item><guid>1</guid></item>"},
		{"chunks", chunked("", ""), chunk(feed)},
		{"trailers", chunked("", chunk(feed)+"0\r\n"), "X: y\r\n"},
		{"gzip members", open("Content-Encoding: gzip\r\n", ""), origintest.Encode("", "gzip")},
		{"skippable zstd frames", open("Content-Encoding: zstd\r\n", ""), "\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"},
		{"brotli metadata", open("Content-Encoding: br\r\n", "\x0c"), "\x0c"},
		{"padding behind gzip", open("Content-Encoding: gzip\r\n", origintest.Encode(feed, "gzip")), "\x00"},
		{"redirect's Location", "HTTP/1.1 302 Found\r\nLocation: http://x.test/", "a"},
		{"body of a 404", "HTTP/1.1 404 Not Found\r\n\r\n", "a"},
	} {
		// Some of them are bounded in bytes, some by time only.
		attacks = append(attacks, attack{name: "endless " + a.name, send: endless(a.said, a.piece), slow: true, gives: map[string]string{"padding behind gzip": feed, "trailers": feed}[a.name]})
	}
	return attacks
}

// framing are answers that say wrongly, or twice, where they begin and end.
func framing() []attack {
	return []attack{
		{name: "nothing", send: says("")},
		{name: "HTTP/0.9", send: says(feed)},
		{name: "the request, echoed", send: func(v *visit) { _ = v.r.Write(v) }},
		{name: "answer in the reason", send: says("HTTP/1.1 404 HTTP/1.1 200 OK\r\n\r\n" + feed)},
		{name: "two answers", send: says(ok("", feed) + ok("", strings.Replace(feed, "Good", "Second", 1))), gives: feed},
		{name: "a field of 4 MB", send: says(ok("X-A: "+strings.Repeat("a", 4<<20)+"\r\n", feed))},
		{name: "100,000 fields", send: says(ok(strings.Repeat("X-A: b\r\n", 100_000), feed))},
		{name: "a byte too few for the length", send: says(open("Content-Length: "+strconv.Itoa(len(feed)+1)+"\r\n", feed)), gives: feed},
		{name: "chunk of 2^64 bytes", send: says(chunked("", "10000000000000000\r\n"+feed+"\r\n0\r\n\r\n"))},
		{name: "trailers that redirect", send: says(chunked("Trailer: Location\r\n", chunk(feed)+"0\r\nLocation: http://x.test/\r\nSet-Cookie: hunter2\r\n\r\n")), gives: feed},
	}
}

func encoded(label, body string) string { return ok("Content-Encoding: "+label+"\r\n", body) }

// bomb is a good feed of three times max_body.
var bomb = sync.OnceValue(func() string {
	return strings.Replace(feed, "Good", strings.Repeat("Good ", 6<<20), 1)
})

// codings are bodies that are larger than they look.
func codings() (attacks []attack) {
	for _, codings := range []string{"gzip", "br", "zstd", "deflate", "gzip, gzip, gzip", "br, br, br", "zstd, zstd, zstd", "deflate, gzip, br"} {
		packed := sync.OnceValue(func() string {
			return origintest.Encode(bomb(), strings.Split(strings.ReplaceAll(codings, "deflate", "zlib"), ", ")...)
		})
		attacks = append(attacks, attack{name: "a bomb in " + codings, send: func(v *visit) { v.say(encoded(codings, packed())) }})
	}
	hidden := sync.OnceValue(func() string { return origintest.Encode(bomb(), slices.Repeat([]string{"gzip"}, 6)...) })
	return append(attacks,
		attack{name: "six layers, one of them named", send: func(v *visit) { v.say(encoded("gzip", hidden())) }},
		attack{name: "six layers, none of them named", send: func(v *visit) { v.say(ok("", hidden())) }},
		attack{name: "a hundred layers by name", send: says(encoded(strings.TrimSuffix(strings.Repeat("gzip, ", 100), ", "), "\x1f\x8b\x08"))},
		attack{name: "a bomb in many gzip members", send: func(v *visit) {
			v.say(encoded("gzip", strings.Repeat(origintest.Encode(strings.Repeat("a", 1<<20), "gzip"), 100)))
		}},
		attack{name: "a bomb in many zstd frames", send: func(v *visit) {
			v.say(encoded("zstd", strings.Repeat(origintest.Encode(strings.Repeat("a", 1<<20), "zstd"), 100)))
		}},
		attack{name: "zstd with a window of 2 GB", send: says(encoded("zstd", "\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"))},
		attack{name: "zstd that promises 16 EB", send: says(encoded("zstd", "\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"))},
	)
}

// headers are good documents with header fields that lie, or that readers must not get.
func headers() (attacks []attack) {
	digits := strings.Repeat("9", 1000)
	for _, field := range []struct {
		name   string
		values []string
	}{
		{"Set-Cookie", []string{"hunter2=1; Path=/"}},
		{"ETag", []string{`"`, `"` + strings.Repeat("e", 100_000) + `"`, "none", `w/"1"`, `"a", "b"`, `"hunter2.gz"`, "\"\xff\"", "\"\x01\""}},
		{"Last-Modified", []string{"", "now", "Fri, 31 Dec 9999 23:59:59 GMT", "Mon, 31 Feb 2025 25:61:61 GMT", digits, strings.Repeat("x", 100_000)}},
		{"Date", []string{"yesterday", "Fri, 31 Dec 9999 23:59:59 GMT"}},
		{"Expires", []string{"never", "Fri, 31 Dec 9999 23:59:59 GMT"}},
		{"Age", []string{"-1", digits}},
		{"Cache-Control", []string{"max-age=" + digits, "max-age=-1", "no-store", "private", strings.Repeat("a,", 20_000)}},
		{"Retry-After", []string{digits, "tomorrow"}},
		{"RateLimit", []string{"limit=0, remaining=0, reset=" + digits, "((((", strings.Repeat(`"a";r=0;t=1,`, 2000)}},
		{"Content-Type", []string{"", "text/html", "application/xhtml+xml", "image/svg+xml", "application/rss+xml; charset=" + strings.Repeat("x", 60_000)}},
		{"Link", []string{strings.Repeat("<a>; rel=preload,", 5000)}},
		{"Vary", []string{"*", strings.Repeat("a,", 20_000)}},
		{"Connection", []string{"keep-alive, Content-Type"}},
		{"Trailer", []string{"Content-Length, ETag"}},
		{"Server", []string{strings.Repeat("s", 50_000)}},
		{"Content-Disposition", []string{strings.Join([]string{ // and all others that readers must not get
			"attachment; filename=hunter2.exe", "Content-Location: file:///etc/passwd", "Location: http://169.254.169.254/", "Refresh: 0; url=http://other.test/hunter2",
			"Strict-Transport-Security: max-age=31536000; includeSubDomains; preload", `Clear-Site-Data: "*"`, "Content-Security-Policy: script-src *", "X-Content-Type-Options: sniff",
			"Access-Control-Allow-Origin: *", "Service-Worker-Allowed: /", `Alt-Svc: h3="evil.test:443"; ma=99999999`, "WWW-Authenticate: Basic realm=hunter2", "X-Accel-Redirect: /etc/passwd", `Link: </hunter2>; rel="hub"`,
		}, "\r\n")}},
	} {
		for _, value := range field.values {
			raw := ok(field.name+": "+value+"\r\n", feed)
			if field.name == "Content-Type" {
				raw = strings.Replace(raw, "Content-Type: application/rss+xml\r\n", "", 1)
			}
			attacks = append(attacks, attack{name: fmt.Sprintf("%s: %.40q (%d)", field.name, value, len(value)), send: says(raw), gives: feed})
		}
	}
	return attacks
}
