// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// Target is what a reader's request asks for, and the two ways to its origin.
type Target struct {
	// Key is what answers are stored under. It is opaque, and compared as a whole:
	// all that an answer depends on belongs in it, save what its Vary names.
	Key string
	// URL is absolute, without a fragment, and with the scheme and host that the
	// server is configured with: nothing of it is the reader's word but path and
	// query. What Location and Content-Location say is resolved against it.
	URL *url.URL
	// KeyOf is the key of another URL of the same scheme and host, which an unsafe
	// request has changed as well; empty: nothing is stored of it.
	KeyOf func(*url.URL) string

	// Request makes the request of a shared fetch: see [Anonymous]. The cache makes a
	// GET of it without conditions and Cookie, and adds what it needs itself:
	// validators of what is stored, a Range, and an Authorization if the reader has
	// one. In that last case nobody else waits for the answer, and it is stored only
	// where it says so (RFC 9111 section 3.5).
	Request func() *http.Request
	// Shared sends such requests, from other goroutines too, and also after Serve has
	// returned. Their context has no values of a reader's and ends by itself. Shared
	// must not follow redirects nor decode bodies, its responses must have the
	// ContentLength that their header says, and their Trailer when their body ends. It
	// reports 1xx answers through [net/http/httptrace]. See also [OriginError].
	Shared http.RoundTripper
	// Own answers a reader's own request, which is passed on as it is, to a writer
	// that does no more than look at status and header.
	Own func(http.ResponseWriter, *http.Request) error
}

// personal are request fields that tell who asks and where from, that tell caches
// on the way what to do, or that make some origins answer another request than the
// one that the key is for.
var personal = []string{
	"Cache-Control", "Pragma", "Expect", "Max-Forwards",
	"Authorization", "Cookie", "User-Agent", "Referer", "Origin", "From", "Via", "Forwarded",
	"X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Client-Ip", "Fastly-Client-Ip",
	"X-Original-Url", "X-Rewrite-Url", "X-Original-Host", "X-Host",
	"X-Http-Method", "X-Http-Method-Override", "X-Method-Override",
}

// personalPrefixes begin the names of more such fields.
var personalPrefixes = []string{"X-Forwarded-", "X-Original-", "Cf-", "Sec-"}

// Anonymous makes a request for a URL of a reader's: with its end-to-end fields,
// save those that tell who asks, and without anything of its connection.
func Anonymous(r *http.Request, u *url.URL) *http.Request {
	target := *u
	out := &http.Request{
		Method: http.MethodGet, URL: &target, Host: u.Host, Header: r.Header.Clone(), Body: http.NoBody,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}
	if out.Header == nil {
		out.Header = http.Header{}
	}
	httpfield.RemoveHopByHop(out.Header)
	for name := range out.Header {
		if slices.Contains(personal, name) || slices.ContainsFunc(personalPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			delete(out.Header, name)
		}
	}
	return out
}
