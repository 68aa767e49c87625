// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// selection is the secondary key of an entry: the request fields that its Vary
// names, as its own request had them (RFC 9111 section 4.1).
type selection []selector

// selector is one field of a selection.
type selector struct {
	name   string // canonical
	value  string // normalised
	absent bool   // the request had no such field, which matches only its absence
}

// maxSelectors bounds the fields of a Vary: every request is compared with all.
const maxSelectors = 64

// selectionOf reads the Vary of a response to a request. It is false where no
// other request can ever match: on a "*" anywhere in it, or a member that is no
// field name; and on more members than make sense.
func selectionOf(header http.Header, r *http.Request) (selection, bool) {
	var s selection
	for _, line := range header.Values("Vary") {
		for member := range strings.SplitSeq(line, ",") {
			name := strings.Trim(member, " \t")
			switch {
			case name == "":
				continue
			case name == "*", !httpguts.ValidHeaderFieldName(name), len(s) == maxSelectors:
				return nil, false
			}
			name = http.CanonicalHeaderKey(name)
			if !slices.ContainsFunc(s, func(other selector) bool { return other.name == name }) {
				s = append(s, selectorOf(name, r))
			}
		}
	}
	slices.SortFunc(s, func(a, b selector) int { return strings.Compare(a.name, b.name) })
	return s, true
}

// selectorOf is a request's value of a field.
func selectorOf(name string, r *http.Request) selector {
	values := r.Header[name]
	if name == "Host" {
		values = []string{r.Host} // net/http keeps it apart
	}
	return selector{name: name, value: normalize(name, values), absent: len(values) == 0}
}

// matches reports whether a request has the same selecting fields.
func (s selection) matches(r *http.Request) bool {
	for _, want := range s {
		if selectorOf(want.name, r) != want {
			return false
		}
	}
	return true
}

// of is the secondary key that another request would have under the same Vary.
func (s selection) of(r *http.Request) string {
	var key strings.Builder
	for _, want := range s {
		has := selectorOf(want.name, r)
		key.WriteString("\x00" + has.name)
		if !has.absent {
			key.WriteString(":" + has.value)
		}
	}
	return key.String()
}

// normalize brings the lines of a field into a form that is the same for values
// that mean the same (RFC 9111 section 4.1): lines joined, no space around commas.
// For fields known to be case-insensitive the case is dropped, and the order of
// content codings too. The order of languages stays: many origins obey it.
func normalize(name string, lines []string) string {
	members := splitList(strings.Join(lines, ","))
	switch name {
	case "Accept-Encoding", "Accept-Language", "Accept-Charset":
		for i, member := range members {
			members[i] = strings.ToLower(member)
		}
	}
	if name == "Accept-Encoding" {
		slices.Sort(members) // RFC 9110 section 12.5.3: only weights rank codings
	}
	return strings.Join(members, ",")
}

// splitList splits a list at the commas outside of quoted strings, drops space
// around its members, and empty members (RFC 9110 section 5.6.1.2).
func splitList(text string) []string {
	var members []string
	add := func(member string) {
		if member = strings.Trim(member, " \t"); member != "" {
			members = append(members, member)
		}
	}
	quoted, start := false, 0
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == ',' && !quoted:
			add(text[start:i])
			start = i + 1
		}
	}
	add(text[start:])
	return members
}
