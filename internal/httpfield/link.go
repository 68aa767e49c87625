// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpfield

import "strings"

// maxLinks is how many links of a response are read.
const maxLinks = 100

// Link returns the target of the first link with a relation type in Link fields, as written (RFC
// 8288 section 3); empty: there is none. Links with another context (anchor) are left out.
func Link(lines []string, relation string) string {
	left := maxLinks
	for _, line := range lines {
		for line != "" && left > 0 {
			left--
			_, after, ok := strings.Cut(line, "<")
			if !ok {
				break
			}
			target, parameters, ok := strings.Cut(after, ">")
			if !ok {
				break
			}
			parameters, line = cut(parameters, ',')
			if hasRelation(parameters, relation) {
				return strings.TrimSpace(target)
			}
		}
	}
	return ""
}

// hasRelation reports whether the parameters of a link have a relation type. The first rel counts
// (RFC 8288 section 3.3).
func hasRelation(parameters, relation string) (has bool) {
	seen := false
	for parameters != "" {
		var parameter string
		parameter, parameters = cut(parameters, ';')
		name, value, _ := strings.Cut(parameter, "=")
		switch name = strings.ToLower(strings.TrimSpace(name)); {
		case name == "anchor":
			return false
		case name == "rel" && !seen:
			seen = true
			for rel := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(value), `"`)) {
				has = has || strings.EqualFold(rel, relation)
			}
		}
	}
	return has
}
