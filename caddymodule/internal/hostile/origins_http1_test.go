// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"strconv"
	"strings"
)

// stalls are answers that stop at each place at which an answer can stop, in each way.
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
		{"name of a field", "HTTP/1.1 200 OK\r\n", "X"},
		{"value of a field", "HTTP/1.1 200 OK\r\nX: ", "y"},
		{"fields", "HTTP/1.1 200 OK\r\n", "X: y\r\n"},
		{"fields of many names", "HTTP/1.1 200 OK\r\n", "Xaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: y\r\n"},
		{"cookies", "HTTP/1.1 200 OK\r\n", "Set-Cookie: a=b\r\n"},
		{"folded field", "HTTP/1.1 200 OK\r\nX: y\r\n", " z\r\n"},
		{"blank before the answer", "", "\r\n"},
		{"rubbish before the answer", "", "rubbish\n"},
		{"NULs before the answer", "", "\x00"},
		{"interim answers 100", "", "HTTP/1.1 100 Continue\r\n\r\n"},
		{"interim answers 102", "", "HTTP/1.1 102 Processing\r\n\r\n"},
		{"interim answers 103", "", "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"},
		{"interim answers 199", "", "HTTP/1.1 199 Misc\r\n\r\n"},
		{"body without a length", open("", ""), feed},
		{"body of white space", open("", ""), " \n"},
		{"body of items", open("", "<rss version='2.0'><channel>"), "<item><guid>1</guid></item>"},
		{"body of comments", open("", ""), "<!-- -->"},
		{"body with a huge length", open("Content-Length: 9000000000000000000\r\n", ""), feed},
		{"chunks", chunked("", ""), chunk(feed)},
		{"chunks of one byte", chunked("", ""), "1\r\n<\r\n"},
		{"chunk's size of zeros", chunked("", ""), "0"},
		{"chunk's extension", chunked("", size+";"), "a=b;"},
		{"chunks with long extensions", chunked("", ""), "1;" + strings.Repeat("a", 4000) + "\r\n<\r\n"},
		{"quoted extension", chunked("", size+";a=\""), "b"},
		{"trailers", chunked("", chunk(feed)+"0\r\n"), "X: y\r\n"},
		{"trailer's value", chunked("", chunk(feed)+"0\r\nX: "), "y"},
		{"gzip members", open("Content-Encoding: gzip\r\n", ""), pack("gzip", "")},
		{"gzip members of a byte", open("Content-Encoding: gzip\r\n", ""), pack("gzip", "<")},
		{"gzip with a name", open("Content-Encoding: gzip\r\n", "\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03"), "name"},
		{"stored gzip blocks without bytes", open("Content-Encoding: gzip\r\n", "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"), "\x00\x00\x00\xff\xff"},
		{"skippable zstd frames", open("Content-Encoding: zstd\r\n", ""), "\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"},
		{"empty zstd frames", open("Content-Encoding: zstd\r\n", ""), pack("zstd", "")},
		{"brotli metadata", open("Content-Encoding: br\r\n", "\x0c"), "\x0c"},
		{"padding behind gzip", open("Content-Encoding: gzip\r\n", pack("gzip", feed)), "\x00"},
		{"redirect's Location", "HTTP/1.1 302 Found\r\nLocation: http://x.test/", "a"},
		{"redirect's body", "HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", "a"},
		{"body of a 404", "HTTP/1.1 404 Not Found\r\n\r\n", "a"},
		{"body of a 304", "HTTP/1.1 304 Not Modified\r\n\r\n", "a"},
		{"body of a 204", "HTTP/1.1 204 No Content\r\n\r\n", "a"},
	} {
		// Some of them are bounded in bytes, some by time only.
		attacks = append(attacks, attack{name: "endless " + a.name, send: endless(a.said, a.piece), slow: true, gives: map[bool]string{true: feed}[strings.HasPrefix(a.name, "padding")]})
	}
	return attacks
}

// framing are answers that say wrongly, or twice, where they begin and end.
func framing() []attack {
	n, hex := strconv.Itoa(len(feed)), strconv.FormatInt(int64(len(feed)), 16)
	attacks := []attack{
		{name: "nothing", send: says("")},
		{name: "status of letters", send: says("HTTP/1.1 abc OK\r\n\r\n")},
		{name: "HTTP/0.9", send: says(feed)},
		{name: "HTTP/1.0 until the end", send: says("HTTP/1.0 200 OK\r\nContent-Type: application/rss+xml\r\n\r\n" + feed), gives: feed},
		{name: "without a length, until the end", send: says(open("", feed)), gives: feed},
		// There are no chunks in HTTP/1.0. Text around a document is often there, and passed on.
		{name: "HTTP/1.0 in chunks", send: says("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(feed) + "0\r\n\r\n"), gives: chunk(feed) + "0\r\n\r\n"},
		{name: "HTTP/1.2", send: says(strings.Replace(ok("", feed), "1.1", "1.2", 1)), gives: feed},
		{name: "HTTP/2 preface", send: says("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
		{name: "HTTP/2 frames", send: says("\x00\x00\x00\x04\x00\x00\x00\x00\x00")},
		{name: "HTTP/2.0 in plain text", send: says(strings.Replace(ok("", feed), "1.1", "2.0", 1)), gives: feed},
		{name: "HTTP/9999999999.1", send: says(strings.Replace(ok("", feed), "1.1", "9999999999.1", 1))},
		{name: "HTTP/-1.1", send: says(strings.Replace(ok("", feed), "1.1", "-1.1", 1))},
		{name: "http in small letters", send: says(strings.Replace(ok("", feed), "HTTP", "http", 1))},
		{name: "HTTPS/1.1", send: says(strings.Replace(ok("", feed), "HTTP", "HTTPS", 1))},
		{name: "no reason", send: says(strings.Replace(ok("", feed), " OK", "", 1)), gives: feed},
		{name: "no status", send: says("HTTP/1.1 OK\r\n\r\n")},
		{name: "status of two digits", send: says(strings.Replace(ok("", feed), "200", "20", 1))},
		{name: "status of four digits", send: says(strings.Replace(ok("", feed), "200", "2000", 1))},
		{name: "negative status", send: says(strings.Replace(ok("", feed), "200", "-20", 1))},
		{name: "status with a sign", send: says(strings.Replace(ok("", feed), "200", "+20", 1))},
		{name: "two blanks before the status", send: says(strings.Replace(ok("", feed), "1.1 200", "1.1  200", 1)), gives: feed},
		{name: "a blank line first", send: says("\r\n" + ok("", feed))},
		{name: "NULs in the reason", send: says(strings.Replace(ok("", feed), "OK", "O\x00K", 1)), gives: feed},
		{name: "the request, echoed", send: func(v *visit) { _ = v.r.Write(v) }},
		{name: "answer in the reason", send: says("HTTP/1.1 404 HTTP/1.1 200 OK\r\nContent-Length: " + n + "\r\n\r\n" + feed)},
		{name: "two answers", send: says(ok("", feed) + ok("", strings.Replace(feed, "Good", "Second", 1))), gives: feed},
		{name: "answer and rubbish", send: says(ok("", feed) + "rubbish"), gives: feed},
		{name: "switching protocols", send: hangs("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"), slow: true},
		{name: "lines end with LF", send: says(strings.ReplaceAll(ok("", feed), "\r\n", "\n")), gives: feed},
		{name: "lines end with CR", send: says(strings.ReplaceAll(ok("", feed), "\r\n", "\r"))},
		{name: "field without a colon", send: says(ok("Content-Type\r\n", feed))},
		{name: "field without a name", send: says(ok(": b\r\n", feed))},
		{name: "blank before the colon", send: says(ok("X-A : b\r\n", feed)), gives: feed},
		{name: "blank before the first field", send: says("HTTP/1.1 200 OK\r\n Content-Type: text/xml\r\n\r\n" + feed)},
		{name: "NUL in a field's name", send: says(ok("X\x00A: b\r\n", feed)), gives: feed},
		{name: "NUL in a field's value", send: says(ok("X-A: \x00\r\n", feed)), gives: feed},
		{name: "CR in a field's value", send: says(ok("X-A: a\rX-B: c\r\n", feed)), gives: feed},
		{name: "field in UTF-16", send: says(ok("X\x00-\x00A\x00:\x00b\x00\r\n", feed)), gives: feed},
		{name: "field of high bytes", send: says(ok("\xff\xfe: \xff\xfe\r\n", feed)), gives: feed},
		{name: "folded length", send: says(open("Content-Length: 5\r\n  7\r\n", feed))},
		{name: "100,000 fields", send: says(ok(strings.Repeat("X-A: b\r\n", 100_000), feed))},
		{name: "a field of 4 MB", send: says(ok("X-A: "+strings.Repeat("a", 4<<20)+"\r\n", feed))},
		{name: "a field of 127 KB", send: says(ok("X-A: "+strings.Repeat("a", 127<<10)+"\r\n", feed)), gives: feed},
		{name: "a name of 1 MB", send: says(ok(strings.Repeat("a", 1<<20)+": b\r\n", feed))},

		{name: "a byte too few for the length", send: says(open("Content-Length: "+strconv.Itoa(len(feed)+1)+"\r\n", feed))},
		{name: "a byte too many for the length", send: says(open("Content-Length: "+strconv.Itoa(len(feed)-1)+"\r\n", feed))},
		{name: "length 0 and a body", send: says(open("Content-Length: 0\r\n", feed))},
		{name: "two lengths that agree", send: says(open("Content-Length: "+n+"\r\nContent-Length: "+n+"\r\n", feed)), gives: feed},
		{name: "two lengths that differ", send: says(open("Content-Length: 5\r\nContent-Length: "+n+"\r\n", feed))},
		{name: "a length and one in small letters", send: says(open("Content-Length: "+n+"\r\ncontent-length: 5\r\n", feed))},
		{name: "length and chunks", send: says(open("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", chunk(feed)+"0\r\n\r\n")), gives: feed},
		{name: "length that is hidden", send: says(open("Content-Length: "+n+"\r\nContent-Length\x00: 5\r\n", feed)), gives: feed},
	}
	for _, value := range []string{"-1", "+" + n, "0x" + hex, n + ".0", "1e2", " ", "", n + ", " + n, "5, " + n, n + ";", "99999999999999", "9223372036854775807",
		"9223372036854775808", "18446744073709551616", "NaN", "٣", n + " " + n, "0" + n, "\"" + n + "\""} {
		gives := ""
		switch value {
		case n + ", " + n, "0" + n, "", " ", "+" + n: // some read it, some refuse it
			gives = feed
		}
		attacks = append(attacks, attack{name: fmt.Sprintf("length %q", value), send: says(open("Content-Length: "+value+"\r\n", feed)), gives: gives})
	}
	for _, value := range []string{"identity", "gzip", "gzip, chunked", "chunked, gzip", "chunked, chunked", "xchunked", "chunked;q=1", " chunked", "\vchunked",
		"chunked\r\nTransfer-Encoding: chunked", "chunked\r\nTransfer-Encoding: identity", "CHUNKED", "chun\x00ked", "\"chunked\"", "trailers", ""} {
		attacks = append(attacks, attack{name: fmt.Sprintf("transfer coding %q", value), send: says(open("Transfer-Encoding: "+value+"\r\n", chunk(feed)+"0\r\n\r\n")), gives: feed})
	}
	for _, size := range []string{"-1", "0x#", "zz", "", " ", "# ", " #", "#\t", "+#", "-#", "00000000000000#", "000000000000000000000000000#", "7fffffffffffffff", "8000000000000000",
		"ffffffffffffffff", "10000000000000000", "#;", "#;a", "#;=", "#\x00", "#,#", "#.", "0_#", "#0", "1", "0"} {
		attacks = append(attacks, attack{name: fmt.Sprintf("chunk of size %q", size), send: says(chunked("", strings.ReplaceAll(size, "#", hex)+"\r\n"+feed+"\r\n0\r\n\r\n")), gives: feed})
	}
	attacks = append(attacks,
		attack{name: "chunk without its end", send: says(chunked("", hex+"\r\n"+feed+"0\r\n\r\n"))},
		attack{name: "chunk ending with LF", send: says(chunked("", hex+"\n"+feed+"\n0\n\n")), gives: feed},
		attack{name: "two last chunks", send: says(chunked("", chunk(feed)+"0\r\n\r\n0\r\n\r\n")), gives: feed},
		attack{name: "no chunk but the last", send: says(chunked("", "0\r\n\r\n"))},
		attack{name: "a body that is not in chunks", send: says(chunked("", feed))},
		attack{name: "trailers that frame", send: says(chunked("Trailer: Content-Length\r\n", chunk(feed)+"0\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\n\r\n")), gives: feed},
		attack{name: "trailers that redirect", send: says(chunked("Trailer: Location\r\n", chunk(feed)+"0\r\nLocation: http://x.test/\r\nSet-Cookie: hunter2\r\n\r\n")), gives: feed},
	)
	for name, banner := range map[string]string{
		"SMTP": "220 mail.example ESMTP\r\n", "SSH": "SSH-2.0-OpenSSH_9.6\r\n", "FTP": "220 Welcome\r\n331 Password\r\n", "POP3": "+OK ready\r\n", "IMAP": "* OK IMAP4rev1\r\n",
		"TLS alert": "\x15\x03\x01\x00\x02\x02\x46", "Redis": "-ERR unknown command 'GET'\r\n", "SIP": "SIP/2.0 200 OK\r\n\r\n", "RTSP": "RTSP/1.0 200 OK\r\n\r\n",
		"SHOUTcast": "ICY 200 OK\r\nicy-name: x\r\n\r\n", "Gopher": "iHello\tfake\t(NULL)\t0\r\n.\r\n", "MySQL": "\x4a\x00\x00\x00\x0a8.0.36\x00", "SOCKS": "\x05\x00",
		"HTTP/3": "\xc0\x00\x00\x00\x01\x08", "gzip": pack("gzip", feed), "WebSocket": "\x81\x05hello", "Memcached": "ERROR\r\n",
	} {
		attacks = append(attacks, attack{name: "another protocol: " + name, send: says(banner)})
	}
	return attacks
}
