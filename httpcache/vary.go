// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"slices"
	"strings"

	"github.com/feedpollard/pollard/internal/httpfield"
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
// other request can ever match, and on more fields than make sense.
func selectionOf(header http.Header, r *http.Request) (selection, bool) {
	names, more := httpfield.Vary(header)
	if more || len(names) > maxSelectors {
		return nil, false
	}
	s := make(selection, len(names))
	for i, name := range names {
		s[i] = selectorOf(name, r)
	}
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
	members := httpfield.SplitList(strings.Join(lines, ","))
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
