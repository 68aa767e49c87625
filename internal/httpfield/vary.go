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
// 12.5.5): their canonical names, sorted, each once. Where any is true it depends
// on more than names can tell, and no other request has the same answer: there is
// a "*" anywhere, or a member that is no field name.
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
