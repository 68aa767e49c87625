// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

// Package version is one content of a feed in the forms that readers get.
//
// A [Version] describes the content: its validators, content type and size. A
// [Representation] is the content in one content coding. [Response] answers requests
// with them: it evaluates their conditions, and writes a 304 or a 200.
//
//	v := version.Version{LastModified: now, ContentType: "application/rss+xml"}
//	v.Identify(body)
//	r := version.NewResponse(&v, false)
//	if r.NotModified(request.Header, now) { ... }
//
// It follows RFC 9110: validators (section 8.8), content codings (8.4.1, 12.5.3) and
// conditional requests (13). It knows neither the cache nor the store: how long a response is
// fresh is set by the caller.
package version

import (
	"crypto/sha256"
	"encoding/hex"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// Version is one distinct content of a feed. Its JSON form is stored.
type Version struct {
	// Tag is the opaque part of the ETag of the identity representation. It is a hash of the
	// content and its type, so that a publisher who takes a change back gives the same tag as before.
	Tag string `json:"tag"`
	// LastModified is the date that readers are given: see [LastModified]. Editions before gave the
	// origin's.
	LastModified time.Time `json:"last_modified"`
	Since        time.Time `json:"since"` // when it was first seen
	ContentType  string    `json:"content_type"`
	Length       int       `json:"length,omitempty"` // of the identity representation, in bytes
	Coding       string    `json:"coding,omitempty"` // in which the content is stored: gzip or identity

	// Header has more fields for readers, and Vary names the request fields that the content
	// depends on, in lower case, apart from Accept-Encoding. Only shields use them.
	Header http.Header `json:"header,omitempty"`
	Vary   []string    `json:"vary,omitempty"`
}

// Identify sets Tag and Length to those of a content. The ContentType has a part in the tag: readers who have the
// same bytes with another one get them again.
func (v *Version) Identify(content []byte) {
	h := sha256.New()
	h.Write([]byte(v.ContentType))
	h.Write(content)
	v.Tag, v.Length = hex.EncodeToString(h.Sum(nil)[:10]), len(content)
}

// ETag returns the entity tag of the version in a coding. RFC 9110 section 8.8.3.3:
// representations in different codings have different strong validators.
func (v *Version) ETag(c Coding) string { return `"` + v.Tag + suffixes[c] + `"` }

// suffixes are what entity tags of the codings end in. They differ from those that Caddy's
// encode handler strips from If-None-Match ("-gzip", "-zstd" and "-br").
var suffixes = [codings]string{".gz", ""}

// IsGzip reports whether the content is stored as gzip, which is how all readers get it
// that accept gzip.
func (v *Version) IsGzip() bool { return v.Coding == names[Gzip] }

// Names reports whether an entity tag of a request names the version, by weak comparison.
// Tags of every coding do, as a reader may accept another coding than last time.
func (v *Version) Names(tag httpfield.Tag) bool {
	if strings.HasPrefix(tag.Opaque, v.Tag) {
		switch tag.Opaque[len(v.Tag):] {
		// Ours, those of earlier editions, and what proxies on the way are known to make of them.
		case "", ".gz", ".zst", ".br", "-gzip", ".gz-gzip", "-br", "-zstd", "--gzip", ";gzip":
			return true
		}
	}
	return false
}

// NotModified evaluates the conditions of a request (RFC 9110 section 13.2.2). With an
// If-None-Match, If-Modified-Since does not count. It is false for a request without conditions. If now is
// zero, only the dates of the version count, and none that a reader made up.
func (v *Version) NotModified(request http.Header, now time.Time) bool {
	return httpfield.NotModified(request["If-None-Match"], request["If-Modified-Since"], v.Names, func(date string) bool { return v.unmodifiedSince(date, now) })
}

// PreconditionFailed reports whether a request asks for another version than this one (RFC 9110
// section 13.2.2, which comes before [Version.NotModified]). With an If-Match,
// If-Unmodified-Since does not count.
func (v *Version) PreconditionFailed(request http.Header) bool {
	if tags := request["If-Match"]; len(tags) > 0 {
		// Section 13.1.1: by strong comparison.
		return !httpfield.HasTag(tags, func(tag httpfield.Tag) bool { return !tag.Weak && v.Names(tag) })
	}
	dates := request["If-Unmodified-Since"]
	if len(dates) != 1 {
		return false
	}
	since, ok := httpfield.ParseDate(dates[0]) // section 13.1.4: a field that is not a single date is ignored
	return ok && v.LastModified.After(since)
}

const (
	// settled is after how long a date that no reader was given may be of the version. Clocks differ,
	// and many readers make the date up, as that of their last request.
	settled = time.Hour
	// ahead is how much later than now a date may be.
	ahead = time.Minute
)

// unmodifiedSince reports whether a reader that sends a date has the version: it is a date of the
// version, or a time by which this reader, if it asked then, got the version. A date of a reader's own
// clock may be earlier than the poll that brought the version, and one in the future says nothing. A
// field that is not a valid date is ignored (RFC 9110 section 13.1.3).
func (v *Version) unmodifiedSince(date string, now time.Time) bool {
	since, ok := httpfield.ParseDate(date)
	switch {
	case !ok:
		return false
	case since.Equal(v.LastModified):
		return true
	}
	return !since.Before(v.LastModified.Add(settled)) && !since.Before(v.Since.Add(settled)) && !since.After(now.Add(ahead))
}

// LastModified returns the date of a new version, which is the next second: some readers send the time of their
// last request, and in this second they may have got the version before, or the empty feed of one that waits
// (RFC 9110 section 8.8.2.2). It is later than the date of the version before, unless the clock was set back.
func LastModified(before, now time.Time) time.Time {
	now = now.UTC().Truncate(time.Second)
	if next := before.Add(time.Second); next.After(now) && !next.After(now.Add(ahead)) {
		return next.UTC()
	}
	return now.Add(time.Second)
}

// Bounds of an origin's Content-Type, in bytes.
const (
	maxContentType = 200
	maxCharset     = 40
)

// ContentType returns the media type of a feed for readers. format is rss, atom or json. The
// origin's own is kept if it is one that a feed may have. HTML never comes out of a gateway.
func ContentType(origin, format string) string {
	media, params, err := mime.ParseMediaType(origin)
	odd := strings.ContainsFunc(origin, func(r rune) bool { return r < ' ' || r > '~' })
	if err == nil && len(origin) <= maxContentType && !odd {
		switch {
		case strings.HasPrefix(media, "text/html"), media == "application/xhtml+xml", media == "image/svg+xml":
		case format == "json" && (media == "application/json" || strings.HasSuffix(media, "+json")),
			format != "json" && (media == "text/xml" || media == "application/xml" || strings.HasSuffix(media, "+xml")):
			return origin
		}
	}
	media = map[string]string{"rss": "application/rss+xml", "atom": "application/atom+xml", "json": "application/feed+json"}[format]
	if charset := params["charset"]; charset != "" && len(charset) <= maxCharset && format != "json" {
		return mime.FormatMediaType(media, map[string]string{"charset": charset})
	}
	return media
}

// Standing is how the validators of a request compare with a feed's versions.
type Standing uint8

// The standings of validators.
const (
	Unconditional Standing = iota // there are none, or they are not compared
	Current                       // of the present version: the answer is a 304
	Earlier                       // of a version before
	Unknown                       // of nothing that readers have been given: invented, damaged, or long past
)
