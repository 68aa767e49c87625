// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/policy"
)

// A Site is an origin that this process itself serves, as it is shown by the
// request that causes a poll.
type Site interface {
	Origin
	// Rules are the operator's rules for the site's feeds.
	Rules() policy.Rules
}

// From says where the feed's next poll goes, which is asked for by a key that is
// no URL: a prefix such as "shield:" makes sure of that. The latest word counts,
// and it holds for one poll.
func (f *Feed) From(site Site) { f.site.Store(&site) }

// learnHeader takes over what an answer says besides the feed, also where the feed
// is the same: from a 200 everything, from a 304 what it has (RFC 9111 section 3.2).
func (v *version) learnHeader(a policy.Answer) {
	fields := siteFields(a.Header)
	if a.Status == http.StatusOK {
		v.Header, v.Vary = fields, VaryFields(a.Header)
		return
	}
	kept := maps.Clone(v.Header) // the old one belongs to a published state
	if kept == nil {
		kept = http.Header{}
	}
	maps.Copy(kept, fields)
	v.Header = kept
	if a.Header["Vary"] != nil {
		v.Vary = VaryFields(a.Header)
	}
}

// notTheSites are the header fields that the cache itself speaks, or that belong
// to one connection or one reader only. All others of a shielded site's answer
// are the publisher's, and readers get them.
var notTheSites = []string{
	"Age", "Cache-Control", "Cache-Status", "Expires", "Pragma", "Vary", "Warning",
	"Etag", "Last-Modified", "Date", "Accept-Ranges", "Retry-After", "Server",
	"Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Content-Md5", "Content-Digest", "Repr-Digest",
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate",
}

// siteFields are the header fields of a shielded site's answer that are kept.
func siteFields(h http.Header) http.Header {
	kept := http.Header{}
	for name, values := range h {
		if !slices.Contains(notTheSites, name) {
			kept[name] = slices.Clone(values)
		}
	}
	return kept
}

// VaryFields are the request header fields that an answer depends on, apart from
// Accept-Encoding, which the cache negotiates itself (RFC 9110 section 12.5.5).
func VaryFields(h http.Header) []string {
	var names []string
	for _, line := range h["Vary"] {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if name != "" && name != "accept-encoding" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
