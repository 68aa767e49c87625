// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// Request is one request of a reader, as far as it is looked at: for [Limiter.Judge]
// before it is answered, for [Limiter.Answered] and [Statistics.Record] after. Nothing
// of it is kept that tells one person from another: see [Statistics] and [Limiter].
type Request struct {
	Time      time.Time
	Feed      string // canonical URL, or the key of a shielded feed
	UserAgent string
	Client    netip.Addr // invalid: not known
	Token     string     // the name of the token that the reader holds; empty: none
	Method    string

	// IfNoneMatch and IfModifiedSince are as sent; Validators is how they compare
	// with what the feed has given.
	IfNoneMatch     string
	IfModifiedSince string
	Validators      Validators

	Referer      bool  // there is one: somebody followed a link
	Compressible bool  // a coding that saves bytes is acceptable: gzip, br or zstd
	Browser      bool  // the headers are those of a person's browser
	SkipHours    Hours // in which the feed does not want to be polled

	// Of the answer: zero in a request that is still to be answered.
	Status int
	Bytes  int64 // sent
	Early  bool  // it came while the reader had been told to wait: the Early of its [Verdict]
}

// Validators is how the validators of a request compare with those that the
// feed has given to readers.
type Validators uint8

// What validators of a request can be.
const (
	ValidatorsNone    Validators = iota // there were none, or nobody compared them
	ValidatorsCurrent                   // of the version that is served now: a 304
	ValidatorsEarlier                   // of a version that was served before
	ValidatorsUnknown                   // never given: invented, damaged, another feed's
)

// Conditional reports whether the request carries a validator, good or bad.
func (r *Request) Conditional() bool {
	return r.IfNoneMatch != "" || r.IfModifiedSince != "" || r.Validators != ValidatorsNone
}

// whole reports whether a request asks for all of the feed, whatever the reader
// may have of it already. An invented validator asks for that just the same.
func (r *Request) whole() bool {
	return r.Method == http.MethodGet && (!r.Conditional() || r.Validators == ValidatorsUnknown)
}

// FromHTTP reads a request's headers. The caller adds what they do not tell:
// Token, Validators, SkipHours, and the answer.
func FromHTTP(r *http.Request, feed string, client netip.Addr, at time.Time) Request {
	return Request{
		Time: at, Feed: feed, Client: client, Method: r.Method,
		UserAgent:       first(r.Header["User-Agent"]),
		IfNoneMatch:     first(r.Header["If-None-Match"]),
		IfModifiedSince: first(r.Header["If-Modified-Since"]),
		Referer:         first(r.Header["Referer"]) != "",
		Compressible:    compressible(r.Header["Accept-Encoding"]),
		Browser:         fromBrowser(r.Header),
	}
}

func first(lines []string) string {
	if len(lines) == 0 {
		return ""
	}
	return lines[0]
}

// savers are the content codings that save bytes.
var savers = []string{"gzip", "br", "zstd"}

// compressible reports whether Accept-Encoding admits a coding that saves bytes
// (RFC 9110 section 12.5.3).
func compressible(lines []string) bool {
	var weights [3]int
	httpfield.Weights(lines, savers, weights[:])
	return weights != [3]int{}
}

// fromBrowser reports whether headers are those of a person's browser: it sends
// Sec-Fetch-* (Fetch Metadata), or prefers HTML. Feed readers that look for a feed
// in a page accept HTML as well, but name a feed type first.
func fromBrowser(h http.Header) bool {
	if h["Sec-Fetch-Mode"] != nil || h["Sec-Fetch-Dest"] != nil || h["Sec-Fetch-Site"] != nil {
		return true
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
