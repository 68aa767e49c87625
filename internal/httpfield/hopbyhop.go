// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"net/http"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// hopByHop are the fields that concern one connection only, whether or not its
// Connection field names them (RFC 9110 section 7.6.1), and those of proxies
// (RFC 9111 section 3.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
}

// RemoveHopByHop removes the fields of one connection. It keeps TE: trailers, because
// trailers are end-to-end.
func RemoveHopByHop(header http.Header) {
	trailers := httpguts.HeaderValuesContainsToken(header["Te"], "trailers")
	for _, line := range header["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			delete(header, textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name)))
		}
	}
	for _, name := range hopByHop {
		delete(header, name)
	}
	if trailers {
		header["Te"] = []string{"trailers"}
	}
}
