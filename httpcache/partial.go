// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// part is what an entry holds of a representation (RFC 9111 section 3.4).
type part struct {
	asked string // the Range that brought all that is there; empty: there were several
	size  int64  // of the representation; -1: not known
	first int64  // position of the body, until that is one of the spans
	last  int64  // position of its last byte, as the origin has it
	exact bool   // what came was as long as the origin says
	spans []span // in order, apart from each other; none before there is a body
}

// span is a run of bytes of a representation.
type span struct {
	first int64
	data  []byte
}

func (s span) end() int64 { return s.first + int64(len(s.data)) }

// partOf reads the Content-Range of an answer with a single part (RFC 9110 section
// 14.4). It is nil where there is none, or it is invalid.
func partOf(header http.Header, asked string) *part {
	first, last, size, ok := contentRange(header)
	if !ok || asked == "" {
		return nil
	}
	return &part{asked: asked, size: size, first: first, last: last}
}

func contentRange(header http.Header) (first, last, size int64, ok bool) {
	text, ok := strings.CutPrefix(header.Get("Content-Range"), "bytes ")
	if !ok || len(header["Content-Range"]) > 1 {
		return 0, 0, 0, false
	}
	extent, total, _ := strings.Cut(text, "/")
	from, to, _ := strings.Cut(extent, "-")
	first, firstOK := position(from)
	last, lastOK := position(to)
	size, sizeOK := position(total)
	if total == "*" {
		size, sizeOK = -1, true
	}
	return first, last, size, firstOK && lastOK && sizeOK && first <= last && (size < 0 || last < size)
}

// position reads a number of bytes, which has nothing but digits.
func position(text string) (int64, bool) {
	n, err := strconv.ParseUint(text, 10, 63)
	return int64(n), err == nil
}

func (e *entry) isPart() bool { return e.part != nil }

// maxSpans bounds the spans of a part: each range that a reader asks for is looked for
// among them.
const maxSpans = 64

// joined is a part together with another one of the same representation, which is
// as long as the limit at most; without it, where they have no strong validator in
// common (RFC 9110 section 15.3.7.3), or one is not where it is said to be, or too
// much lies between them. What is complete is no part any more.
func (e *entry) joined(other *entry, limit int64) *entry {
	p := *e.part
	p.spans = []span{{p.first, e.body}}
	p.exact = p.spans[0].end() == p.last+1
	if other != nil && p.exact && other.part.exact && other.part.size == p.size && e.tag().EqualStrong(other.tag()) {
		if spans := merge(append(p.spans, other.part.spans...)); len(spans) <= maxSpans && lengthOf(spans) <= limit {
			p.asked, p.spans = "", spans
		}
	}
	next := *e
	next.part, next.body = &p, nil
	if p.exact && len(p.spans) == 1 && p.spans[0].first == 0 && p.spans[0].end() == p.size {
		next.part, next.body, next.status = nil, p.spans[0].data, http.StatusOK
		next.header = e.header.Clone()
		next.header.Del("Content-Range")
	}
	return &next
}

func (e *entry) tag() httpfield.Tag { return httpfield.ParseTag(e.header.Get("Etag")) }

// merge brings spans in order and joins those that touch.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	merged := spans[:1]
	for _, s := range spans[1:] {
		switch last := &merged[len(merged)-1]; {
		case s.first > last.end():
			merged = append(merged, s)
		case s.end() > last.end():
			// A copy: readers may have the old one.
			last.data = slices.Concat(last.data, s.data[last.end()-s.first:])
		}
	}
	return merged
}

func lengthOf(spans []span) (n int64) {
	for _, s := range spans {
		n += int64(len(s.data))
	}
	return n
}

// covers reports whether a part has what a request asks for: the same ranges as
// were answered before, or ranges of which all bytes are there.
func (e *entry) covers(r *http.Request) bool {
	text := r.Header.Get("Range")
	if r.Method != http.MethodGet || text == "" {
		return false
	}
	if condition := r.Header.Get("If-Range"); condition != "" && !httpfield.ParseTag(condition).EqualStrong(e.tag()) {
		return false
	}
	if e.repeats(text) {
		return true
	}
	ranges := byteRanges(text, e.part.size)
	total := int64(0)
	for _, want := range ranges {
		total += want.end - want.first
		if !slices.ContainsFunc(e.part.spans, func(s span) bool { return s.first <= want.first && want.end <= s.end() }) {
			return false
		}
	}
	// Of overlapping ranges [http.ServeContent] makes the whole.
	return len(ranges) > 0 && total <= e.part.size
}

// repeats reports whether a Range has been answered by exactly what is stored.
func (e *entry) repeats(text string) bool {
	return text == e.part.asked
}

// byteRange is a range of bytes, without its end.
type byteRange struct{ first, end int64 }

// byteRanges reads a Range field for a representation of a size (RFC 9110 section
// 14.1.2). It is nil where that is invalid, or cannot be satisfied in full.
func byteRanges(text string, size int64) []byteRange {
	set, ok := strings.CutPrefix(text, "bytes=")
	if !ok || size < 0 {
		return nil
	}
	var ranges []byteRange
	for member := range strings.SplitSeq(set, ",") {
		from, to, ok := strings.Cut(strings.Trim(member, " \t"), "-")
		first, firstOK := position(from)
		last, lastOK := position(to)
		r := byteRange{first, last + 1}
		switch {
		case from == "":
			r = byteRange{max(0, size-last), size}
			ok = ok && lastOK && last > 0
		case to == "":
			r.end = size
			ok = ok && firstOK
		default:
			r.end = min(r.end, size)
			ok = ok && firstOK && lastOK && first <= last
		}
		if !ok || r.first >= r.end {
			return nil
		}
		ranges = append(ranges, r)
	}
	return ranges
}

// replyPart answers a request that a part covers.
func (x *exchange) replyPart(e *entry, now time.Time) error {
	x.begin(e, cacheStatus{entry: e}, now)
	if notModified(x.r.Header, e.status, e.header, now) {
		return x.replyNotModified()
	}
	if text := x.r.Header.Get("Range"); e.repeats(text) {
		data := e.part.spans[0].data
		x.w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		return x.stream(e.status, captured(data), int64(len(data)), func() {})
	}
	delete(x.w.Header(), "Content-Range")
	return x.replyRange(e.header, &sparse{part: e.part}, now)
}

// sparse reads a representation of which only parts are there.
type sparse struct {
	part *part
	at   int64
}

var errNotStored = errors.New("these bytes are not stored")

func (s *sparse) Read(p []byte) (int, error) {
	if s.at >= s.part.size {
		return 0, io.EOF
	}
	for _, has := range s.part.spans {
		if has.first <= s.at && s.at < has.end() {
			n := copy(p, has.data[s.at-has.first:])
			s.at += int64(n)
			return n, nil
		}
	}
	return 0, errNotStored
}

func (s *sparse) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		s.at = offset
	case io.SeekCurrent:
		s.at += offset
	case io.SeekEnd:
		s.at = s.part.size + offset
	}
	return s.at, nil
}

// isPrefix reports whether the rest of a part can be asked for by one range, and
// be known to belong to it.
func (e *entry) isPrefix() bool {
	tag := e.tag()
	return e.part.exact && len(e.part.spans) == 1 && e.part.spans[0].first == 0 && e.part.size > 0 && tag.EqualStrong(tag)
}

// continuedBy reports whether an answer is the rest of a part.
func (e *entry) continuedBy(answer *http.Response) bool {
	first, _, size, ok := contentRange(answer.Header)
	rest := e.part.size - e.part.spans[0].end()
	return answer.StatusCode == http.StatusPartialContent && ok && first == e.part.spans[0].end() && size == e.part.size &&
		(answer.ContentLength < 0 || answer.ContentLength == rest) && e.tag().EqualStrong(httpfield.ParseTag(answer.Header.Get("Etag")))
}

// complete makes of the answer that is the rest of a part an answer with all
// (RFC 9111 section 3.4).
func (e *entry) complete(answer *http.Response) {
	answer.Header = e.updated(answer.Header)
	delete(answer.Header, "Content-Range")
	answer.Header.Set("Content-Length", strconv.FormatInt(e.part.size, 10))
	answer.StatusCode, answer.ContentLength = http.StatusOK, e.part.size
	answer.Body = behind(e.part.spans[0].data, answer.Body)
}
