// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strings"
)

// notModified evaluates a request's conditions (RFC 9110 section 13.2.2): where
// there is an If-None-Match, If-Modified-Since does not count.
func (p *prepared) notModified(h http.Header) bool {
	return p.answers(h["If-None-Match"], h["If-Modified-Since"])
}

func (p *prepared) answers(tags, dates []string) bool {
	if len(tags) > 0 {
		for _, list := range tags {
			if p.anyTag(list) {
				return true
			}
		}
		return false
	}
	if len(dates) == 1 {
		if len(p.lastModified) == 1 && dates[0] == p.lastModified[0] {
			return true // what a good reader sends: our own text
		}
		// RFC 9110 section 13.1.3: a field that is no valid date is ignored.
		since, err := http.ParseTime(dates[0])
		return err == nil && !p.modified.After(since)
	}
	return false
}

// anyTag reports whether a list of entity tags names the version, by weak
// comparison (RFC 9110 section 13.1.2). Tags of every coding name it, as a
// reader may have changed its mind about coding, and so does the origin's own.
func (p *prepared) anyTag(list string) bool {
	for {
		list = strings.TrimLeft(list, " \t,")
		if list == "" {
			return false
		}
		if list == "*" {
			return true // any current representation will do, and there is one
		}
		var tag string
		tag, list = cutTag(list)
		if p.named(tag) {
			return true
		}
	}
}

// Standing is how the validators of a request compare with a feed's versions.
type Standing int

// What a request's validators can be.
const (
	Unconditional Standing = iota // there are none
	Current                       // of the present version: the answer is a 304
	Earlier                       // of a version before
	Unknown                       // of nothing that readers have been given: invented, damaged, or long past
)

// Standing compares a request's validators with the feed's versions, for whoever
// wants to judge its reader. It polls nothing.
func (f *Feed) Standing(h http.Header) Standing {
	tags, dates := h["If-None-Match"], h["If-Modified-Since"]
	if len(tags) == 0 && len(dates) == 0 {
		return Unconditional
	}
	m := &f.state.Load().memo
	if m.Version.Tag != "" {
		now := prepared{tag: m.Version.Tag, originTag: m.Version.OriginTag, modified: m.Version.LastModified}
		if now.answers(tags, dates) {
			return Current
		}
	}
	for i := range m.Past {
		before := prepared{tag: m.Past[i].Tag}
		switch {
		case len(tags) > 0 && before.answers(tags, nil), len(tags) == 0 && dates[0] == m.Past[i].LastModified.Format(http.TimeFormat):
			return Earlier
		}
	}
	return Unknown
}

// cutTag takes the first entity tag off a list, without W/ and quotes. Readers
// that lose the quotes are met with tolerance.
func cutTag(list string) (tag, rest string) {
	if len(list) > 2 && (list[0] == 'W' || list[0] == 'w') && list[1] == '/' {
		list = list[2:]
	}
	if list[0] == '"' {
		if end := strings.IndexByte(list[1:], '"'); end >= 0 {
			return list[1 : 1+end], list[end+2:]
		}
		return list[1:], ""
	}
	tag, rest, _ = strings.Cut(list, ",")
	return strings.TrimRight(tag, " \t"), rest
}

// named reports whether an opaque tag names the version.
func (p *prepared) named(tag string) bool {
	if strings.HasPrefix(tag, p.tag) {
		switch tag[len(p.tag):] {
		// Ours, and what proxies on the way are known to make of them.
		case "", ".gz", ".zst", ".br", "-gzip", ".gz-gzip", "-br", "-zstd", "--gzip", ";gzip":
			return true
		}
	}
	return p.originTag != "" && tag == opaque(p.originTag)
}

// opaque is an entity tag without W/ and quotes.
func opaque(tag string) string {
	return strings.Trim(strings.TrimPrefix(strings.TrimSpace(tag), "W/"), `"`)
}
