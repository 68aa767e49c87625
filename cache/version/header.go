// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"maps"
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// Update takes over the header fields of an answer of a shield's origin, also if the content
// is the same: all of a 200, and those that a 304 has (RFC 9111 section 3.2).
func (v *Version) Update(status int, answer http.Header) {
	fields := kept(answer)
	if status == http.StatusOK {
		v.Header, v.Vary = fields, VaryFields(answer)
		return
	}
	merged := maps.Clone(v.Header) // readers may be sent the old one
	if merged == nil {
		merged = http.Header{}
	}
	maps.Copy(merged, fields)
	v.Header = merged
	if answer["Vary"] != nil {
		v.Vary = VaryFields(answer)
	}
}

// notKept are the header fields that the cache sets itself, or that are for one reader
// only. All others of a shield's origin are the publisher's, and readers get them.
var notKept = []string{
	"Age", "Cache-Control", "Cache-Status", "Cdn-Cache-Control", "Expires", "Pragma", "Vary", "Warning",
	"Etag", "Last-Modified", "Date", "Accept-Ranges", "Retry-After", "Server",
	"Content-Encoding", "Content-Length", "Content-Range", "Content-Type", "Content-Md5", "Content-Digest", "Repr-Digest",
	"Set-Cookie", "Set-Cookie2", "Www-Authenticate",
}

func kept(h http.Header) http.Header {
	fields := h.Clone()
	if fields == nil {
		fields = http.Header{}
	}
	httpfield.RemoveHopByHop(fields)
	for _, name := range notKept {
		delete(fields, name)
	}
	return fields
}

// VaryFields returns the request header fields that an answer depends on, in lower case and
// without Accept-Encoding, which is negotiated here (RFC 9110 section 12.5.5). If the answer
// depends on more than fields, it returns "*" alone.
func VaryFields(answer http.Header) []string {
	names, more := httpfield.Vary(answer)
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
