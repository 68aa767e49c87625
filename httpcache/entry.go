// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"net/http"
	"slices"
	"time"
)

// entry is a stored response, or one on its way into the store. It does not
// change after others have seen it.
type entry struct {
	status    int
	header    http.Header // end-to-end fields to store; always with a Date, never with Age or Content-Length
	body      []byte
	part      *part     // what it is of a representation; nil: all of it
	selection selection // what of its request chose it
	rules     rules
	age       time.Duration // corrected_initial_age of RFC 9111 section 4.2.3
	received  time.Time     // response_time
}

// notStored are fields of a response that later readers do not get: what is
// counted anew for each of them, what RFC 9111 section 3.1 excludes, and
// Set-Cookie. A cookie is meant for one reader, whatever the lifetime beside it says.
var notStored = []string{
	"Age", "Content-Length", "Set-Cookie",
	"Proxy-Authenticate", "Proxy-Authentication-Info", "Proxy-Authorization",
}

// newEntry makes an entry, still without a body, of an answer whose hop-by-hop
// fields are gone. Sent and received enclose the wait for its header. It is nil
// where RFC 9111 section 3 forbids to store the answer, or storing it has no use.
func newEntry(r *http.Request, status int, header http.Header, sent, received time.Time) *entry {
	selection, ok := selectionOf(header, r)
	if !ok {
		return nil
	}
	rules := rulesOf(status, header, received)
	if !storable(status, header, rules, r) {
		return nil
	}
	var part *part
	if status == http.StatusPartialContent {
		if part = partOf(header, r.Header.Get("Range")); part == nil {
			return nil
		}
	}
	e := &entry{
		status:    status,
		part:      part,
		header:    make(http.Header, len(header)),
		selection: selection,
		rules:     rules,
		age:       initialAge(header, sent, received),
		received:  received,
	}
	for name, values := range header {
		if !slices.Contains(notStored, name) && !slices.Contains(rules.omitted, name) {
			e.header[name] = slices.Clone(values)
		}
	}
	// RFC 9110 section 6.6.1: who stores a response without a Date notes the time.
	if _, err := dateOf(header, "Date", received); err != nil {
		e.header.Set("Date", received.UTC().Format(http.TimeFormat))
	}
	return e
}

func (e *entry) with(body []byte) *entry {
	complete := *e
	complete.body = body
	return &complete
}

// cost is roughly what the entry takes of the memory, in bytes.
func (e *entry) cost() int64 {
	const perEntry, perField = 512, 64
	cost := perEntry + len(e.body)
	if e.isPart() {
		cost += int(lengthOf(e.part.spans))
	}
	for name, values := range e.header {
		cost += perField + len(name)
		for _, value := range values {
			cost += len(value)
		}
	}
	for _, s := range e.selection {
		cost += perField + len(s.name) + len(s.value)
	}
	return int64(cost)
}
