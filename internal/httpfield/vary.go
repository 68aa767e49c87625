// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Vary reads the request fields that a response depends on (RFC 9110 section
// 12.5.5): their canonical names, sorted, each once. If any is true, no other request may
// get the same response, because there is a "*" or a member that is not a field name.
func Vary(response http.Header) (names []string, any bool) {
	for _, line := range response["Vary"] {
		for member := range strings.SplitSeq(line, ",") {
			name := strings.Trim(member, " \t")
			switch {
			case name == "":
				continue
			case name == "*", !httpguts.ValidHeaderFieldName(name):
				return nil, true
			}
			names = append(names, http.CanonicalHeaderKey(name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), false
}
