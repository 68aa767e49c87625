// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

// Request is one request of a reader, for [Limiter.Check] before it is answered, and for
// [Limiter.Answered] and [Statistics.Record] after it. They keep neither the full address
// nor anything else that identifies a person.
type Request struct {
	Time      time.Time
	Feed      string // canonical URL, or the key of a shielded feed
	UserAgent string
	Client    netip.Addr // invalid: not known
	Method    string

	// IfNoneMatch and IfModifiedSince are as sent. Validators is their state.
	IfNoneMatch     string
	IfModifiedSince string
	Validators      version.Standing

	Compression bool   // a coding that saves bytes is acceptable: gzip, br or zstd
	Person      bool   // a browser's navigation, or a link on another page
	Forwarded   string // X-Forwarded-For, if a proxy that is not trusted sent it
	SkipHours   Hours  // the feed's skip hours

	// The answer. These fields are zero before the request is answered.
	Status int
	Bytes  int64 // sent
	Early  bool  // the Early of its [Verdict]
}

// Hours are hours of the day, GMT, in which a feed should not be requested.
type Hours []int

// Contains reports whether a time is in one of the hours.
func (h Hours) Contains(t time.Time) bool { return len(h) > 0 && h.After(t).After(t) }

// After returns the first time from t on that is in none of the hours.
func (h Hours) After(t time.Time) time.Time { return policy.Hints{SkipHours: h}.OutOfSkip(t, t, 0) }

// Conditional reports whether the request has a validator, valid or not.
func (r *Request) Conditional() bool {
	return r.IfNoneMatch != "" || r.IfModifiedSince != "" || r.Validators != version.Unconditional
}

// whole reports whether a GET can only be answered with the whole feed: it is
// unconditional, or its tags are unknown. A date is a condition, even if the reader made it up.
func (r *Request) whole() bool {
	if r.Method != http.MethodGet || r.Conditional() && r.Validators != version.Unknown {
		return false
	}
	if r.IfNoneMatch != "" || r.IfModifiedSince == "" {
		return true
	}
	_, dated := httpfield.ParseDate(r.IfModifiedSince)
	return !dated
}

// FromHTTP returns a Request with the headers of r. The caller sets Validators, SkipHours,
// and the answer.
func FromHTTP(r *http.Request, feed string, client netip.Addr, at time.Time) Request {
	return Request{
		Time: at, Feed: feed, Client: client, Method: r.Method,
		UserAgent:       field(r.Header, "User-Agent"),
		IfNoneMatch:     field(r.Header, "If-None-Match"),
		IfModifiedSince: field(r.Header, "If-Modified-Since"),
		Compression:     acceptsCompression(r.Header["Accept-Encoding"]),
		Person:          wantsPage(r.Header) || linked(r),
	}
}

// field returns the first line of a field, "" if there is none. The name is in its canonical form, which [http.Header.Get]
// makes of it each time.
func field(h http.Header, name string) string {
	if lines := h[name]; len(lines) > 0 {
		return lines[0]
	}
	return ""
}

// compressions are the content codings that save bytes.
var compressions = []string{"gzip", "br", "zstd"}

// acceptsCompression reports whether Accept-Encoding admits a coding that saves bytes
// (RFC 9110 section 12.5.3).
func acceptsCompression(lines []string) bool {
	var weights [3]int
	httpfield.Weights(lines, compressions, weights[:])
	return weights != [3]int{}
}

// wantsPage reports whether headers are those of a browser that opens a page: it says so
// (Fetch Metadata, https://www.w3.org/TR/fetch-metadata/), or it is an older one and
// prefers HTML. Feed readers that search pages for feeds accept HTML too, but name a feed
// type first.
func wantsPage(h http.Header) bool {
	if mode := field(h, "Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	accept := strings.Join(h["Accept"], ",")
	html := strings.Index(accept, "text/html")
	if html < 0 {
		return false
	}
	for _, feed := range []string{"rss+xml", "atom+xml", "rdf+xml", "feed+json"} {
		if at := strings.Index(accept, feed); at >= 0 && at < html {
			return false
		}
	}
	return true
}

// linked reports whether a request comes from a link: its Referer is another page.
// SimplePie, and so FreshRSS and WordPress, send the feed's own URL as Referer.
func linked(r *http.Request) bool {
	referer := field(r.Header, "Referer")
	if referer == "" {
		return false
	}
	from, err := url.Parse(referer)
	if err != nil || from.Host == "" {
		return false
	}
	feed := url.URL{Host: r.Host}
	return !strings.EqualFold(from.Hostname(), feed.Hostname()) || strings.TrimRight(from.Path, "/") != strings.TrimRight(r.URL.Path, "/")
}
