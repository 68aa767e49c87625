// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/feedpollard/pollard/policy/document"
	"github.com/feedpollard/pollard/policy/document/internal/namespace"
)

// Served returns the document that a gateway serves in place of body: relative URLs are
// absolute (see [Absolute]), and all that would lead readers past the gateway is removed:
//
//   - links with rel=self or rel=hub of the feed (not of entries), and these relations of
//     links that have others as well;
//   - itunes:new-feed-url, podcast:podping and RSS's cloud;
//   - JSON Feed's feed_url and hubs.
//
// The hints of a feed are therefore those of body, not of the result. Without anything
// to change, the result is body itself.
func Served(body []byte, contentType, base string) ([]byte, Report) {
	rewritten, report := Absolute(body, contentType, base)
	return withoutAddresses(rewritten, contentType), report
}

// withoutAddresses removes what names the feed's own address or a push service.
func withoutAddresses(body []byte, contentType string) []byte {
	if !document.ASCIICompatible(body, contentType) {
		return body
	}
	r := &remover{body: body}
	switch start := textStart(body); {
	case start == len(body):
	case body[start] == '{' && !utf8.Valid(body):
		return body
	case body[start] == '{':
		j := &jsonRemover{remover: r}
		if !scanJSON(body, start, j) {
			return body // it is unknown what follows: a comma may have to go as well
		}
		j.cut(j.kept)
	default:
		if !scanXML(body, start, nil, r) {
			return body
		}
	}
	slices.SortFunc(r.edits, func(a, b edit) int { return cmp.Compare(a.start, b.start) })
	return applied(body, r.edits)
}

// remover plans the removal of elements in XML documents.
type remover struct {
	body  []byte
	edits []edit
}

func (r *remover) remove(start, end int) { r.edits = append(r.edits, edit{start, end, ""}) }

func (r *remover) open(e *element, attributes []attribute) {
	if e.level != inFeed {
		return
	}
	switch {
	case e.space == namespace.Atom && e.local == "link":
		r.link(e, attributes)
	case e.space == namespace.ITunes && e.local == "new-feed-url",
		e.space == namespace.Podcasting && e.local == "podping",
		e.space == namespace.RSS && e.local == "cloud":
		e.task = hubTask
	}
}

func (r *remover) interrupt(*element) {}

func (r *remover) close(e *element, end, after int) {
	if after == end {
		after = e.content // without an end tag, the start tag alone
	}
	r.remove(e.start, after)
}

// link removes a link, or the words of its rel that name the feed or a hub.
func (r *remover) link(e *element, attributes []attribute) {
	var words []span
	other := false
	for _, a := range attributes {
		if a.prefix != "" || a.local != "rel" {
			continue
		}
		for at := a.value.start; at < a.value.end; {
			word := span{at, at}
			for at < a.value.end && !isSpace(r.body[at]) {
				at++
			}
			word.end = at
			switch relation(string(r.body[word.start:word.end])) {
			case "hub", "self":
				words = append(words, word)
			case "":
				at++
			default:
				other = true
			}
		}
	}
	switch {
	case len(words) == 0:
	case other:
		for _, word := range words {
			r.remove(word.start, word.end)
		}
	default:
		e.task = hubTask
	}
}

// jsonRemover plans the removal of members of a JSON Feed.
type jsonRemover struct {
	*remover
	kept int // where the last member ends that stays; 0: there was none
	from int // where the first of the members begins that are to be removed; 0: none
	to   int // where the last of them ends
}

func (j *jsonRemover) text([]string, piece) {}

func (j *jsonRemover) member(name string, key, value span) {
	if name == "hubs" || name == "feed_url" {
		if j.from == 0 {
			j.from = key.start
		}
		j.to = value.end
		return
	}
	if j.from > 0 {
		j.to = key.start // with the comma and the space before this member
		j.cut(0)
	}
	j.kept = value.end
}

// cut removes the members that were found, and the comma before them if they are the
// last of all.
func (j *jsonRemover) cut(kept int) {
	if j.from == 0 {
		return
	}
	if kept > 0 {
		j.from = kept
	}
	j.remove(j.from, j.to)
	j.from = 0
}
