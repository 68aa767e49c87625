// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"strconv"
	"strings"
)

// stalls are answers that stop, in each way, at each place where an answer can stop.
func stalls() (attacks []attack) {
	length := "Content-Length: " + strconv.Itoa(len(feed)) + "\r\n"
	gz, br, zst := pack("gzip", feed), pack("br", feed), pack("zstd", feed)
	for _, place := range []struct{ name, said, rest string }{
		{"the status line", "", ok("", feed)},
		{"the status", "HTTP/1.1 2", "00 OK\r\n\r\n"},
		{"the reason", "HTTP/1.1 200 O", "K\r\n\r\n"},
		{"a field's name", "HTTP/1.1 200 OK\r\nContent-Ty", "pe: text/xml\r\n\r\n"},
		{"a field's value", "HTTP/1.1 200 OK\r\nContent-Type: text/", "xml\r\n\r\n"},
		{"a field's end", "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r", "\n\r\n"},
		{"the header's end", "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n", "\r\n"},
		{"the header's last byte", "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r", "\n"},
		{"an interim answer", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n", "\r\n"},
		{"the answer after an interim one", "HTTP/1.1 102 Processing\r\n\r\n", ok("", feed)},
		{"a body's begin", open(length, ""), feed},
		{"a body", open(length, feed[:50]), feed[50:]},
		{"a body's last byte", open(length, feed[:len(feed)-1]), feed[len(feed)-1:]},
		{"a chunk's size", chunked("", "6"), "e\r\n"},
		{"a chunk's extension", chunked("", fmt.Sprintf("%x;a=", len(feed))), "b\r\n" + feed},
		{"a chunk", chunked("", fmt.Sprintf("%x\r\n%s", len(feed), feed[:50])), feed[50:]},
		{"a chunk's end", chunked("", fmt.Sprintf("%x\r\n%s", len(feed), feed)), "\r\n"},
		{"the last chunk", chunked("", chunk(feed)), "0\r\n\r\n"},
		{"a trailer", chunked("", chunk(feed)+"0\r\nX-A: b"), "\r\n\r\n"},
		{"the trailers' end", chunked("", chunk(feed)+"0\r\n"), "\r\n"},
		{"gzip", open("Content-Encoding: gzip\r\nContent-Length: "+strconv.Itoa(len(gz))+"\r\n", gz[:len(gz)/2]), gz[len(gz)/2:]},
		{"gzip's checksum", open("Content-Encoding: gzip\r\nContent-Length: "+strconv.Itoa(len(gz))+"\r\n", gz[:len(gz)-4]), gz[len(gz)-4:]},
		{"brotli", open("Content-Encoding: br\r\nContent-Length: "+strconv.Itoa(len(br))+"\r\n", br[:len(br)/2]), br[len(br)/2:]},
		{"zstd", open("Content-Encoding: zstd\r\nContent-Length: "+strconv.Itoa(len(zst))+"\r\n", zst[:len(zst)/2]), zst[len(zst)/2:]},
	} {
		attacks = append(attacks,
			attack{name: "closes before " + place.name, send: says(place.said)},
			attack{name: "hangs before " + place.name, send: hangs(place.said), slow: true},
			attack{name: "resets before " + place.name, send: resets(place.said)},
			// The last bytes come in time.
			attack{name: "drips from " + place.name, send: drips(place.said, place.rest), slow: true, gives: feed},
		)
	}
	return attacks
}

// endlessAnswers have no end, in each part that can be without one.
func endlessAnswers() (attacks []attack) {
	size := strconv.FormatInt(int64(len(feed)), 16)
	for _, a := range []struct{ name, said, piece string }{
		{"status line", "HTTP/1.1 200 ", "OK "},
		{"value of a field", "HTTP/1.1 200 OK\r\nX: ", "y"},
		{"fields", "HTTP/1.1 200 OK\r\n", "X: y\r\n"},
		{"cookies", "HTTP/1.1 200 OK\r\n", "Set-Cookie: a=b\r\n"},
		{"blank before the answer", "", "\r\n"},
		{"rubbish before the answer", "", "rubbish\n"},
		{"interim answers 100", "", "HTTP/1.1 100 Continue\r\n\r\n"},
		{"interim answers 103", "", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"},
		{"body without a length", open("", ""), feed},
		{"body of items", open("", "<rss version='2.0'><channel>"), "<item><guid>1</guid></item>"},
		{"body of comments", open("", ""), "<!-- -->"},
		{"body with a huge length", open("Content-Length: 9000000000000000000\r\n", ""), feed},
		{"chunks", chunked("", ""), chunk(feed)},
		{"chunk's extension", chunked("", size+";"), "a=b;"},
		{"trailers", chunked("", chunk(feed)+"0\r\n"), "X: y\r\n"},
		{"gzip members", open("Content-Encoding: gzip\r\n", ""), pack("gzip", "")},
		{"gzip with a name", open("Content-Encoding: gzip\r\n", "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03"), "name"},
		{"skippable zstd frames", open("Content-Encoding: zstd\r\n", ""), "\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"},
		{"empty zstd frames", open("Content-Encoding: zstd\r\n", ""), pack("zstd", "")},
		{"brotli metadata", open("Content-Encoding: br\r\n", "\x0c"), "\x0c"},
		{"padding behind gzip", open("Content-Encoding: gzip\r\n", pack("gzip", feed)), "\x00"},
		{"redirect's Location", "HTTP/1.1 302 Found\r\nLocation: http://x.test/", "a"},
		{"redirect's body", "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "a"},
		{"body of a 404", "HTTP/1.1 404 Not Found\r\n\r\n", "a"},
	} {
		// Some of them are bounded in bytes, some by time only.
		attacks = append(attacks, attack{name: "endless " + a.name, send: endless(a.said, a.piece), slow: true, gives: map[bool]string{true: feed}[strings.HasPrefix(a.name, "padding")]})
	}
	return attacks
}

// framing are answers that say wrongly, or twice, where they begin and end. The HTTP/1 client
// has tests of its own for malformed lines.
func framing() []attack {
	n := strconv.Itoa(len(feed))
	attacks := []attack{
		{name: "nothing", send: says("")},
		{name: "HTTP/0.9", send: says(feed)},
		{name: "HTTP/1.0 until the end", send: says("HTTP/1.0 200 OK\r\nContent-Type: application/rss+xml\r\n\r\n" + feed), gives: feed},
		{name: "without a length, until the end", send: says(open("", feed)), gives: feed},
		// There are no chunks in HTTP/1.0. Text around a document is often there, and passed on.
		{name: "HTTP/1.0 in chunks", send: says("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(feed) + "0\r\n\r\n"), gives: chunk(feed) + "0\r\n\r\n"},
		{name: "the request, echoed", send: func(v *visit) { _ = v.r.Write(v) }},
		{name: "answer in the reason", send: says("HTTP/1.1 404 HTTP/1.1 200 OK\r\nContent-Length: " + n + "\r\n\r\n" + feed)},
		{name: "two answers", send: says(ok("", feed) + ok("", strings.Replace(feed, "Good", "Second", 1))), gives: feed},
		{name: "switching protocols", send: hangs("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"), slow: true},
		{name: "lines end with LF", send: says(strings.ReplaceAll(ok("", feed), "\r\n", "\n")), gives: feed},
		{name: "NUL in a field's value", send: says(ok("X-A: \x00\r\n", feed)), gives: feed},
		{name: "field of high bytes", send: says(ok("\xff\xfe: \xff\xfe\r\n", feed)), gives: feed},
		{name: "100,000 fields", send: says(ok(strings.Repeat("X-A: b\r\n", 100_000), feed))},
		{name: "a field of 4 MB", send: says(ok("X-A: "+strings.Repeat("a", 4<<20)+"\r\n", feed))},
		{name: "a field of 127 KB", send: says(ok("X-A: "+strings.Repeat("a", 127<<10)+"\r\n", feed)), gives: feed},
		{name: "a name of 1 MB", send: says(ok(strings.Repeat("a", 1<<20)+": b\r\n", feed))},
		{name: "a byte too few for the length", send: says(open("Content-Length: "+strconv.Itoa(len(feed)+1)+"\r\n", feed))},
		{name: "a byte too many for the length", send: says(open("Content-Length: "+strconv.Itoa(len(feed)-1)+"\r\n", feed))},
		{name: "length 0 and a body", send: says(open("Content-Length: 0\r\n", feed))},
		{name: "a length of 2^63", send: says(open("Content-Length: 9223372036854775808\r\n", feed))},
		{name: "two lengths that differ", send: says(open("Content-Length: 5\r\nContent-Length: "+n+"\r\n", feed))},
		{name: "length and chunks", send: says(open("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunk(feed)+"0\r\n\r\n")), gives: feed},
		{name: "chunk without its end", send: says(chunked("", strconv.FormatInt(int64(len(feed)), 16)+"\r\n"+feed+"0\r\n\r\n"))},
		{name: "chunk of 2^64 bytes", send: says(chunked("", "10000000000000000\r\n"+feed+"\r\n0\r\n\r\n"))},
		{name: "no chunk but the last", send: says(chunked("", "0\r\n\r\n"))},
		{name: "trailers that redirect", send: says(chunked("Trailer: Location\r\n", chunk(feed)+"0\r\nLocation: http://x.test/\r\nSet-Cookie: hunter2\r\n\r\n")), gives: feed},
	}
	for name, banner := range map[string]string{"SMTP": "220 mail.example ESMTP\r\n", "SSH": "SSH-2.0-OpenSSH_9.6\r\n", "SHOUTcast": "ICY 200 OK\r\nicy-name: x\r\n\r\n", "TLS": "\x15\x03\x01\x00\x02\x02\x46"} {
		attacks = append(attacks, attack{name: "another protocol: " + name, send: says(banner)})
	}
	return attacks
}
