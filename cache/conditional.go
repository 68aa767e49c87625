// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/httpfield"
)

// notModified evaluates a request's conditions (RFC 9110 section 13.2.2): where
// there is an If-None-Match, If-Modified-Since does not count.
func (p *prepared) notModified(h http.Header) bool {
	return p.answers(h["If-None-Match"], h["If-Modified-Since"])
}

func (p *prepared) answers(tags, dates []string) bool {
	return httpfield.NotModified(tags, dates, p.named, p.unmodified)
}

// unmodified reports whether the version is not newer than a date.
func (p *prepared) unmodified(date string) bool {
	if len(p.lastModified) == 1 && date == p.lastModified[0] {
		return true // what a good reader sends: our own text
	}
	// RFC 9110 section 13.1.3: a field that is no valid date is ignored.
	since, err := http.ParseTime(date)
	return err == nil && !p.modified.After(since)
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

// named reports whether an entity tag names the version, by weak comparison. Tags
// of every coding name it, as a reader may have changed its mind about coding, and
// so does the origin's own.
func (p *prepared) named(tag httpfield.Tag) bool {
	if strings.HasPrefix(tag.Opaque, p.tag) {
		switch tag.Opaque[len(p.tag):] {
		// Ours, and what proxies on the way are known to make of them.
		case "", ".gz", ".zst", ".br", "-gzip", ".gz-gzip", "-br", "-zstd", "--gzip", ";gzip":
			return true
		}
	}
	return tag.Equal(httpfield.ParseTag(p.originTag))
}
