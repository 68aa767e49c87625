// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"net/textproto"

	"golang.org/x/net/http/httpguts"
)

// hopByHop are the fields that concern one connection only, whether or not its
// Connection field names them (RFC 9110 section 7.6.1), and those of proxies,
// which this is not (RFC 9111 section 3.1).
var hopByHop = []string{
	"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
}

// removeHopByHop leaves the end-to-end fields of a message.
func removeHopByHop(header http.Header) {
	trailers := httpguts.HeaderValuesContainsToken(header["Te"], "trailers")
	for _, line := range header["Connection"] {
		for _, name := range splitList(line) {
			delete(header, textproto.CanonicalMIMEHeaderKey(name))
		}
	}
	for _, name := range hopByHop {
		delete(header, name)
	}
	if trailers {
		// The next hop may send trailers: those of what is not stored are passed on.
		header["Te"] = []string{"trailers"}
	}
}
