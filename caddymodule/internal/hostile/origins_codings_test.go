// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// pack encodes a text in content codings, the first one first.
func pack(codings, text string) string {
	for coding := range strings.SplitSeq(codings, ", ") {
		var b bytes.Buffer
		var w io.WriteCloser
		switch coding {
		case "gzip":
			w = gzip.NewWriter(&b)
		case "br":
			w = brotli.NewWriterLevel(&b, 1)
		case "zstd":
			w, _ = zstd.NewWriter(&b, zstd.WithEncoderConcurrency(1)) // the options are valid
		case "deflate":
			w = zlib.NewWriter(&b)
		case "bare":
			w, _ = flate.NewWriter(&b, 6) // the level is valid
		default:
			panic(coding)
		}
		_, _ = io.WriteString(w, text) // to memory
		_ = w.Close()
		text = b.String()
	}
	return text
}

// encoded is an answer in codings, of which the last name may be one of pack's own.
func encoded(label, body string) string {
	return ok("Content-Encoding: "+label+"\r\n", body)
}

// bomb is a good feed of three times max_body.
var bomb = sync.OnceValue(func() string {
	return strings.Replace(feed, "Good", strings.Repeat("Good ", 6<<20), 1)
})

// codings are bodies that are larger than they look, or are not what they are said to be.
func codings() (attacks []attack) {
	labelOf := func(codings string) string { return strings.ReplaceAll(codings, "bare", "deflate") }
	for _, codings := range []string{"gzip", "br", "zstd", "deflate", "bare", "gzip, gzip", "br, gzip", "gzip, br", "zstd, gzip", "gzip, zstd", "gzip, gzip, gzip", "br, br, br", "zstd, zstd, zstd", "deflate, gzip, br"} {
		packed := sync.OnceValue(func() string { return pack(codings, bomb()) })
		attacks = append(attacks, attack{name: "a bomb in " + codings, send: func(v *visit) { v.say(encoded(labelOf(codings), packed())) }})
	}
	four := sync.OnceValue(func() string { return pack("gzip, gzip, gzip, gzip", feed) })
	hidden := sync.OnceValue(func() string { return pack("gzip, gzip, gzip, gzip, gzip, gzip", bomb()) })
	attacks = append(attacks,
		attack{name: "four layers", send: func(v *visit) { v.say(encoded("gzip, gzip, gzip, gzip", four())) }},
		attack{name: "a hundred layers by name", send: says(encoded(strings.TrimSuffix(strings.Repeat("gzip, ", 100), ", "), "\x1f\x8b\x08"))},
		attack{name: "six layers, one of them named", send: func(v *visit) { v.say(encoded("gzip", hidden())) }},
		attack{name: "six layers, none of them named", send: func(v *visit) { v.say(ok("", hidden())) }},
		attack{name: "a bomb in many gzip members", send: func(v *visit) { v.say(encoded("gzip", strings.Repeat(pack("gzip", strings.Repeat("a", 1<<20)), 100))) }},
		attack{name: "a bomb in many zstd frames", send: func(v *visit) { v.say(encoded("zstd", strings.Repeat(pack("zstd", strings.Repeat("a", 1<<20)), 100))) }},
		attack{name: "a million empty gzip members", send: func(v *visit) { v.say(encoded("gzip", strings.Repeat(pack("gzip", ""), 100_000))) }},
		attack{name: "zstd with a window of 2 GB", send: says(encoded("zstd", "\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"))},
		attack{name: "zstd that promises 16 EB", send: says(encoded("zstd", "\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00"))},
		attack{name: "zstd with a dictionary", send: says(encoded("zstd", "\x28\xb5\x2f\xfd\x03\x00\xff\xff\xff\xff\x01\x00\x00"))},
		attack{name: "brotli with the largest window", send: says(encoded("br", "\x11\x00"))},
		attack{name: "deflate with a dictionary", send: says(encoded("deflate", "\x78\xbb\xff\xff\xff\xff\x00"))},
		attack{name: "gzip of a document of 10 MiB and a byte", send: func(v *visit) {
			v.say(encoded("gzip", pack("gzip", feed+strings.Repeat("\n", 10<<20-len(feed)+1))))
		}},
		attack{name: "gzip that is a tar", send: says(encoded("gzip", pack("gzip", "feed.xml\x00\x00\x00")))},
		attack{name: "zip", send: says(ok("", "PK\x03\x04\x14\x00\x00\x00\x08\x00"))},
		attack{name: "bzip2", send: says(ok("", "BZh91AY&SY"))},
		attack{name: "xz", send: says(ok("", "\xfd7zXZ\x00\x00\x04"))},
	)
	for _, coding := range []string{"gzip", "br", "zstd", "deflate", "bare"} {
		whole, label := pack(coding, feed), labelOf(coding)
		for _, harm := range []struct{ name, body string }{
			{"cut", whole[:len(whole)-1]},
			{"cut in the middle", whole[:len(whole)/2]},
			{"cut after a byte", whole[:1]},
			{"with its middle turned", whole[:len(whole)/2] + string(whole[len(whole)/2]^0x5a) + whole[len(whole)/2+1:]},
			{"of nothing", pack(coding, "")},
			{"of rubbish", "\xff\xff\xff\xff\xff\xff\xff\xff"},
			{"of NULs", strings.Repeat("\x00", 1000)},
		} {
			// The document may decode nevertheless, to a feed with another letter or to no feed.
			attacks = append(attacks, attack{name: coding + " " + harm.name, send: says(encoded(label, harm.body))})
		}
		attacks = append(attacks, attack{name: coding + " and more", send: says(encoded(label, whole+"<rss>more</rss>")), gives: feed})
		for _, other := range []string{"gzip", "br", "zstd", "deflate"} {
			if label != other {
				gives := "" // a .gz file says so by itself
				attacks = append(attacks, attack{name: coding + " labelled " + other, send: says(encoded(other, whole)), gives: gives})
			}
		}
	}
	for _, label := range []string{"rot13", "gzip;q=1", "gzip gzip", "\"gzip\"", "compress", "exi", "pack200-gzip", "dcb", "dcz", "*", "gzip\x00", "gzіp", "aes128gcm", "utf-8", strings.Repeat("x", 60_000)} {
		attacks = append(attacks, attack{name: fmt.Sprintf("coding %.20q", label), send: says(encoded(label, pack("gzip", feed)))})
	}
	for _, label := range []string{"identity", "IDENTITY", "", " ", ",", ",,,,", "identity, identity", "gzip, identity", "br", "zstd", "gzip", "deflate"} {
		gives := feed // a body without the magic number of gzip or zstd is taken as it is
		if label == "br" || label == "deflate" {
			gives = ""
		}
		attacks = append(attacks, attack{name: fmt.Sprintf("plain text labelled %q", label), send: says(encoded(label, feed)), gives: gives})
	}
	for _, label := range []string{"GZIP", "x-gzip", "x-GZip", "identity, gzip", "gzip,", ",gzip", "gzip\t"} {
		attacks = append(attacks, attack{name: fmt.Sprintf("gzip labelled %q", label), send: says(encoded(label, pack("gzip", feed))), gives: feed})
	}
	attacks = append(attacks,
		attack{name: "gzip without a label", send: says(ok("", pack("gzip", feed))), gives: feed},
		attack{name: "length of the decoded body", send: says(open("Content-Encoding: gzip\r\nContent-Length: "+strconv.Itoa(len(feed))+"\r\n", pack("gzip", feed)))},
	)
	return attacks
}
