// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

const (
	slow      = 2 * time.Second // a reader with 500 feeds waits that long for each
	clockSkew = 5 * time.Minute
	onePacket = 1400 // bytes: less fits into one packet anyway
)

// checkAnswer judges how the feed was sent.
func (x *checker) checkAnswer() {
	x.checkRedirects()
	x.checkType()
	x.checkVary()
	a := x.first
	if took := a.At.Sub(a.Asked); took > slow && len(a.Moves) == 0 { // hops are spaced, so a redirect takes longer
		x.find("slow", fmt.Sprintf("%v until the feed was complete.", took.Round(100*time.Millisecond)))
	}
	if cookies := a.Header.Values("Set-Cookie"); len(cookies) > 0 {
		name, _, _ := strings.Cut(cookies[0], "=")
		x.find("cookie", "Set-Cookie: "+name+"=...")
	}
	if date, err := http.ParseTime(a.Header.Get("Date")); err == nil && a.Header.Get("Age") == "" {
		if skew := date.Sub(a.At); skew.Abs() > clockSkew {
			x.find("clock", fmt.Sprintf("Date: %s is off by %v.", a.Header.Get("Date"), skew.Round(time.Minute)))
		}
	}
	u, err := feedurl.Parse(a.URL)
	local := err == nil && (u.Name() == "localhost" || u.Addr().IsLoopback() || u.Addr().IsPrivate()) // the publisher's own machine
	if strings.HasPrefix(a.URL, "http://") && !local {
		x.find("no-https", a.URL)
	}
}

func (x *checker) checkRedirects() {
	moves := x.first.Moves
	if len(moves) == 0 {
		return
	}
	var way []string
	id := "redirected"
	for _, m := range moves {
		way = append(way, fmt.Sprintf("%d to %s", m.Status, feedurl.Redact(m.To)))
		if m.Status != http.StatusMovedPermanently && m.Status != http.StatusPermanentRedirect {
			id = "redirected-for-now"
		}
	}
	x.find(id, strings.Join(way, ", then ")+".", plural(len(moves), "more request", "more requests"))
}

// feedTypes are the media types of feeds, by format.
var feedTypes = map[string][]string{
	"rss":  {"application/rss+xml", "application/rdf+xml", "application/xml", "text/xml"},
	"atom": {"application/atom+xml", "application/xml", "text/xml"},
	"json": {"application/feed+json", "application/json"},
}

func (x *checker) checkType() {
	written := x.first.Header.Get("Content-Type")
	types := feedTypes[x.document.Format]
	media, _, err := mime.ParseMediaType(written)
	switch {
	case written == "":
		x.find("no-type", "There is no such field.", types[0])
	case err != nil:
		x.find("type-syntax", "Content-Type: "+written, types[0])
	case slices.Contains(types, media):
		x.good("Its Content-Type is %s.", media)
	case slices.Contains([]string{"text/html", "application/octet-stream", "text/plain"}, media):
		x.find("wrong-type", "Content-Type: "+written, types[0])
	default:
		x.find("other-type", "Content-Type: "+written, types[0])
	}
}

func (x *checker) checkVary() {
	names, everything := httpfield.Vary(x.first.Header)
	written := "Vary: " + strings.Join(x.first.Header.Values("Vary"), ", ")
	for _, name := range names {
		everything = everything || name == "Cookie" || name == "User-Agent" || name == "Referer" || name == "Origin"
	}
	if everything {
		x.find("vary", written)
	}
	if encoding(x.first) != "" && !everything && !slices.Contains(names, "Accept-Encoding") {
		x.find("no-vary", "Content-Encoding: "+encoding(x.first)+", without it.")
	}
}

// checkCompression compares the feed with and without compression.
func (x *checker) checkCompression(plain policy.Answer) {
	coding, length := encoding(x.first), len(x.first.Body)
	switch {
	case coding != "":
		x.good("It is compressed: %s instead of %s (%s).", size(x.first.Wire), size(length), coding)
	case length > onePacket:
		x.find("not-compressed", fmt.Sprintf("%s were sent as they are, though gzip, br and zstd were offered; gzip makes %s of them.", size(length), size(gzipSize(x.first.Body))), feedTypes[x.document.Format][0])
	}
	if plain.Failure == policy.FailureNone && encoding(plain) != "" {
		x.find("compressed-unasked", "Accept-Encoding: identity was answered with Content-Encoding: "+encoding(plain)+".")
	}
}

// encoding returns the content coding of an answer, or "".
func encoding(a policy.Answer) string {
	coding := strings.ToLower(strings.TrimSpace(a.Header.Get("Content-Encoding")))
	if coding == "identity" {
		return ""
	}
	return coding
}

func gzipSize(body []byte) int {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write(body) // into memory
	_ = w.Close()
	return b.Len()
}

func size[N int | int64](n N) string { return status.Size(int64(n)) }

func plural(n int, one, many string) string {
	return strconv.Itoa(n) + " " + status.Plural(int64(n), one, many)
}
