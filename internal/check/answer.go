// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/klauspost/compress/gzip"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

const (
	slow         = 2 * time.Second // a reader with 500 feeds waits that long for each
	clockSkew    = 5 * time.Minute
	compressible = 1400 // bytes: less fits into one packet anyway
)

// judgeAnswer looks at how the feed was sent.
func (x *examination) judgeAnswer() {
	x.judgeRedirects()
	x.judgeType()
	x.judgeVary()
	a := x.first
	if took := a.At.Sub(a.Asked); took > slow && len(a.Moves) == 0 { // hops are spaced, so a redirect takes longer
		x.find(Advice, "slow", "The answer takes long",
			fmt.Sprintf("%v until the feed was complete.", took.Round(100*time.Millisecond)),
			"Make the feed when something is published, and serve it as a file or from a cache.")
	}
	if cookies := a.Header.Values("Set-Cookie"); len(cookies) > 0 {
		name, _, _ := strings.Cut(cookies[0], "=")
		x.find(Advice, "cookie", "The feed sets a cookie", "Set-Cookie: "+name+"=...",
			"Leave cookies out of feeds: many caches do not store an answer that has one.")
	}
	if date, err := policy.ParseHTTPDate(a.Header.Get("Date"), a.At); err == nil && a.Header.Get("Age") == "" {
		if skew := date.Sub(a.At); skew.Abs() > clockSkew {
			x.find(Advice, "clock", "The server's clock is wrong",
				fmt.Sprintf("Date: %s is off by %v.", a.Header.Get("Date"), skew.Round(time.Minute)), "Let it be set over the network (NTP): Expires and Last-Modified depend on it.")
		}
	}
	if strings.HasPrefix(a.URL, "http://") && !isLocal(a.URL) {
		x.find(Advice, "no-https", "The feed comes without encryption", a.URL,
			"Serve it over https, redirect permanently (301), and name the new address in the feed.")
	}
}

// isLocal reports whether a feed is on the publisher's own machine.
func isLocal(raw string) bool {
	u, err := feedurl.Parse(raw)
	return err == nil && (u.Name() == "localhost" || u.Addr().IsLoopback() || u.Addr().IsPrivate())
}

func (x *examination) judgeRedirects() {
	moves := x.first.Moves
	if len(moves) == 0 {
		return
	}
	var way []string
	permanent := true
	for _, m := range moves {
		way = append(way, fmt.Sprintf("%d to %s", m.Status, feedurl.Redact(m.To)))
		permanent = permanent && (m.Status == http.StatusMovedPermanently || m.Status == http.StatusPermanentRedirect)
	}
	evidence := strings.Join(way, ", then ") + "."
	if permanent {
		x.find(Advice, "redirected", "The feed has moved", evidence,
			"Link to the new address everywhere: each poll of the old one costs "+plural(len(moves), "more request", "more requests")+".")
		return
	}
	x.find(Advice, "redirected-for-now", "The address redirects, and not for good", evidence,
		"If the feed stays there, redirect with 301 or 308, so that readers can remember it: each poll costs "+plural(len(moves), "more request", "more requests")+" until then.")
}

// feedTypes are the media types of feeds, by format.
var feedTypes = map[string][]string{
	"rss":  {"application/rss+xml", "application/rdf+xml", "application/xml", "text/xml"},
	"atom": {"application/atom+xml", "application/xml", "text/xml"},
	"json": {"application/feed+json", "application/json"},
}

func (x *examination) judgeType() {
	written := x.first.Header.Get("Content-Type")
	types := feedTypes[x.document.Format]
	media, _, err := mime.ParseMediaType(written)
	switch {
	case written == "":
		x.find(Problem, "no-type", "The answer has no Content-Type", "There is no such field.", "Send Content-Type: "+types[0]+".")
	case err != nil:
		x.find(Problem, "type-syntax", "The Content-Type is malformed", "Content-Type: "+written, "Send Content-Type: "+types[0]+".")
	case slices.Contains(types, media):
		x.good("Its Content-Type is %s.", media)
	case media == "text/html" || media == "application/octet-stream" || media == "text/plain":
		x.find(Problem, "wrong-type", "The Content-Type is not that of a feed", "Content-Type: "+written,
			"Send Content-Type: "+types[0]+": some readers refuse the feed, and browsers show or save it.")
	default:
		x.find(Advice, "other-type", "The Content-Type is not that of this format", "Content-Type: "+written, "Send Content-Type: "+types[0]+".")
	}
}

func (x *examination) judgeVary() {
	names, everything := httpfield.Vary(x.first.Header)
	written := "Vary: " + strings.Join(x.first.Header.Values("Vary"), ", ")
	for _, name := range names {
		everything = everything || name == "Cookie" || name == "User-Agent" || name == "Referer" || name == "Origin"
	}
	if everything {
		x.find(Advice, "vary", "Caches can hardly store the feed", written,
			"Make the feed the same for all, and send Vary: Accept-Encoding alone.")
	}
	if encoding(x.first) != "" && !everything && !slices.Contains(names, "Accept-Encoding") {
		x.find(Advice, "no-vary", "The compressed feed has no Vary: Accept-Encoding", "Content-Encoding: "+encoding(x.first)+", without it.",
			"Send Vary: Accept-Encoding, or caches may serve compressed bytes to clients that cannot read them.")
	}
}

// judgeCompression compares the feed with and without compression.
func (x *examination) judgeCompression(plain policy.Answer) {
	coding, length := encoding(x.first), len(x.first.Body)
	switch {
	case coding != "":
		x.good("It is compressed: %s instead of %s (%s).", size(x.first.Wire), size(length), coding)
	case length > compressible:
		x.find(Problem, "not-compressed", "The feed is not compressed",
			fmt.Sprintf("%s were sent as they are, though gzip, br and zstd were offered; gzip makes %s of them.", size(length), size(gzipped(x.first.Body))),
			"Switch compression on for "+feedTypes[x.document.Format][0]+" and the other types of feeds: servers often compress text/html only.")
	}
	if plain.Failure == policy.FailureNone && encoding(plain) != "" {
		x.find(Problem, "compressed-unasked", "The feed is compressed even when the client does not accept it",
			"Accept-Encoding: identity was answered with Content-Encoding: "+encoding(plain)+".",
			"Compress only where the request offers it, and send Vary: Accept-Encoding, so that caches do the same.")
	}
}

// encoding is the content coding of an answer; empty: none.
func encoding(a policy.Answer) string {
	coding := strings.ToLower(strings.TrimSpace(a.Header.Get("Content-Encoding")))
	if coding == "identity" {
		return ""
	}
	return coding
}

// gzipped is the length of bytes with gzip.
func gzipped(body []byte) int64 {
	var n counter
	w := gzip.NewWriter(&n)
	_, _ = w.Write(body) // a counter cannot fail
	_ = w.Close()
	return int64(n)
}

// counter is a writer that only counts.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

func size[N int | int64](n N) string { return humanize.IBytes(uint64(max(n, 0))) }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
