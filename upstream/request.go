// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package upstream

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// Accept is sent in each poll. It has the feed types first: otherwise some origins respond with HTML.
const Accept = "application/atom+xml, application/rss+xml, application/feed+json, " +
	"application/rdf+xml;q=0.9, application/xml;q=0.8, text/xml;q=0.8, application/json;q=0.7, */*;q=0.1"

// acceptEncoding is the same in each poll: origins that compress have a different ETag
// for each coding.
const acceptEncoding = "gzip, br, zstd"

// project is the contact in the User-Agent if the operator has not set one. The page says
// what polls there.
const project = "https://github.com/feedpollard/pollard"

// newRequest makes a GET. All that is sent to an origin is in this file, but for the cookies that redirects of this
// poll have set. There is no Referer, no Cache-Control, no A-IM, no Range, and nothing of a reader.
func newRequest(ctx context.Context, t feedurl.URL, agent string, user *url.Userinfo, v policy.Validators) (r *http.Request, conditional bool) {
	r = (&http.Request{
		Method:     http.MethodGet,
		URL:        t.RequestURL(),
		Host:       t.HostPort(),
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		Header: http.Header{
			"User-Agent":      {agent},
			"Accept":          {Accept},
			"Accept-Encoding": {acceptEncoding},
		},
	}).WithContext(ctx)
	// RFC 9110 section 13.1: validators belong to the resource that they came from.
	if v.URL == t.String() {
		// If there are both, both are sent: either may be broken at the origin.
		conditional = validate(r, "If-None-Match", v.ETag) || conditional
		conditional = validate(r, "If-Modified-Since", v.LastModified) || conditional
	}
	if user != nil {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	return r, conditional
}

// validate sets one validator byte for byte, quoted or not. One that is invalid in a
// header field is left out.
func validate(r *http.Request, field, value string) bool {
	if value == "" || !httpguts.ValidHeaderFieldValue(value) {
		return false
	}
	r.Header[field] = []string{value}
	return true
}

// Agent returns the User-Agent of a poll for a number of readers.
func (s *Settings) Agent(subscribers int) string {
	if s.UserAgent != "" {
		return s.UserAgent
	}
	product := "Pollard"
	if s.Version != "" {
		product += "/" + strings.ReplaceAll(s.Version, " ", "-")
	}
	about := "+" + cmp.Or(s.Contact, project)
	if subscribers > 0 {
		// "subscribers" also of one: publishers' log tools look for that very word.
		about += fmt.Sprintf("; %d subscribers", subscribers)
	}
	return product + " (" + about + ")"
}
