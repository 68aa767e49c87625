// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

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

// notTheSites are the header fields that the cache itself speaks, or that are for
// one reader only. All others of a shielded site's answer are the publisher's, and
// readers get them.
var notTheSites = []string{
	"Age", "Cache-Control", "Cache-Status", "Expires", "Pragma", "Vary", "Warning",
	"Etag", "Last-Modified", "Date", "Accept-Ranges", "Retry-After", "Server",
	"Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Content-Md5", "Content-Digest", "Repr-Digest",
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate",
}

// siteFields are the header fields of a shielded site's answer that are kept.
func siteFields(h http.Header) http.Header {
	kept := h.Clone()
	if kept == nil {
		kept = http.Header{}
	}
	httpfield.RemoveHopByHop(kept)
	for _, name := range notTheSites {
		delete(kept, name)
	}
	return kept
}

// VaryFields are the request header fields that an answer depends on, in lower
// case and apart from Accept-Encoding, which the cache negotiates itself (RFC 9110
// section 12.5.5). An answer that depends on more than fields has "*" alone.
func VaryFields(h http.Header) []string {
	names, more := httpfield.Vary(h)
	if more {
		return []string{"*"}
	}
	var fields []string
	for _, name := range names {
		if name != "Accept-Encoding" {
			fields = append(fields, strings.ToLower(name))
		}
	}
	return fields
}
