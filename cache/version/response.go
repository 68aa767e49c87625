// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package version

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// Header values that never change. Each response gets a copy of them.
var (
	encodings = [codings][]string{{Gzip.String()}, nil}
	noSniff   = []string{"nosniff"}
	// The URL of a feed may hold a token: the sites that its links lead to must not get it.
	noReferrer = []string{"no-referrer"}
	// Documents of third parties come out of the gateway's own origin. A browser that shows
	// one runs and loads nothing.
	sandbox = []string{"default-src 'none'; sandbox"}
)

// Representation is a version in one content coding.
type Representation struct {
	Tag    string // of the version
	Coding Coding
	Size   int64    // in bytes
	Parts  [][]byte // of the content; none: the caller of [Response.Write] writes it
	length []string
}

// Represent returns the representation of the version in a coding, with all of its content.
func (v *Version) Represent(c Coding, parts ...[]byte) *Representation {
	var size int64
	for _, part := range parts {
		size += int64(len(part))
	}
	r := v.Describe(c, size)
	r.Parts = parts
	return r
}

// Describe returns a representation of so many bytes, without them.
func (v *Version) Describe(c Coding, size int64) *Representation {
	return &Representation{Tag: v.Tag, Coding: c, Size: size, length: []string{strconv.FormatInt(size, 10)}}
}

// Response answers requests with a version. It is immutable, and has its header values
// prepared as the slices that a header holds.
type Response struct {
	version    *Version
	datedFrom  time.Time // from when on readers are given the date
	thirdParty bool

	lastModified, contentType, vary []string
	notModified                     http.Header // more fields of a 304

	etags [codings][]string
}

// NewResponse returns the response of a version, which must not change any more. thirdParty
// says that the content is a third party's and not that of the site that serves it.
func NewResponse(v *Version, thirdParty bool) *Response {
	r := &Response{
		version: v, thirdParty: thirdParty, datedFrom: v.LastModified.Add(-ahead),
		lastModified: []string{v.LastModified.UTC().Format(http.TimeFormat)},
		contentType:  []string{v.ContentType},
		vary:         []string{strings.Join(append([]string{"Accept-Encoding"}, v.Vary...), ", ")},
	}
	for c := range r.etags {
		r.etags[c] = []string{v.ETag(Coding(c))}
	}
	for name, values := range v.Header {
		if !thirdParty && (strings.HasPrefix(name, "Access-Control-") || name == "Content-Location") {
			if r.notModified == nil {
				r.notModified = make(http.Header)
			}
			r.notModified[name] = values
		}
	}
	return r
}

// Undated returns a response without Last-Modified, for readers to whom dates say nothing: one that sends a date alone
// gets the whole feed.
func (r *Response) Undated() *Response {
	undated := *r
	undated.lastModified = nil
	return &undated
}

// NotModified evaluates the conditions of a request as [Version.NotModified] does. The date
// that readers were given need not be parsed.
func (r *Response) NotModified(request http.Header, now time.Time) bool {
	if len(request["If-None-Match"]) > 0 {
		return r.version.NotModified(request, now)
	}
	if r.lastModified == nil {
		return false
	}
	dates := request["If-Modified-Since"]
	return len(dates) == 1 && (dates[0] == r.lastModified[0] || r.version.NotModified(request, now))
}

// Field is a field of a header. Responses may share its values.
type Field struct {
	Name   string // in canonical form
	Values []string
}

// fields sets the fields of a header. Responses share their values until here; Caddy's directive header edits values
// where they are, so each header gets a copy. One piece of memory holds all of them.
type fields struct {
	header http.Header
	values []string
}

// fieldsOf returns the fields of a header that gets some, and up to more of them.
func fieldsOf(h http.Header, some []Field, more int) fields {
	f := fields{h, make([]string, 0, len(some)+more)}
	for _, field := range some {
		f.set(field.Name, field.Values)
	}
	return f
}

func (f *fields) set(name string, shared []string) {
	n := len(f.values)
	f.values = append(f.values, shared...)
	f.header[name] = f.values[n:len(f.values):len(f.values)]
}

func (f *fields) setAll(shared http.Header) {
	for name, values := range shared {
		f.set(name, values)
	}
}

// setDate sets Last-Modified, which must not be later than Date (RFC 9110 section 8.8.2.1). A new version is of the
// next second, and then so is Date. If the clock was set back, Last-Modified is left out.
func (r *Response) setDate(f *fields, now time.Time) {
	if r.lastModified == nil || now.Before(r.datedFrom) {
		return
	}
	f.set("Last-Modified", r.lastModified)
	if now.Before(r.version.LastModified) {
		f.set("Date", r.lastModified)
	}
}

// WriteNotModified answers that what the reader has is still good (RFC 9110 section 15.4.5):
// with ETag, Vary and Content-Location of the 200, and without the fields that describe its body.
// Access-Control-* are sent too: without them a browser withholds a 304 from a script of another
// site (Fetch section 4.9). So is Last-Modified, as some readers keep of both validators what came
// last. more are set too.
func (r *Response) WriteNotModified(w http.ResponseWriter, request http.Header, now time.Time, more ...Field) {
	f := fieldsOf(w.Header(), more, 4+len(r.notModified))
	f.setAll(r.notModified)
	f.set("Vary", r.vary)
	f.set("Etag", r.etags[PreferenceOf(request["Accept-Encoding"]).Best(r.version.IsGzip())]) // that of a 200
	r.setDate(&f, now)
	w.WriteHeader(http.StatusNotModified)
}

// Write answers with a representation of the version, and sets more fields too. It returns the number of bytes
// sent; there are none to a HEAD.
func (r *Response) Write(w http.ResponseWriter, request *http.Request, rep *Representation, now time.Time, more ...Field) int64 {
	f := fieldsOf(w.Header(), more, 10+len(r.version.Header))
	f.set("Vary", r.vary)
	f.set("Etag", r.etags[rep.Coding])
	f.set("Content-Type", r.contentType)
	f.set("X-Content-Type-Options", noSniff)
	if r.thirdParty {
		f.set("Content-Security-Policy", sandbox)
		f.set("Referrer-Policy", noReferrer)
	} else {
		f.setAll(r.version.Header)
	}
	if encoding := encodings[rep.Coding]; encoding != nil {
		f.set("Content-Encoding", encoding)
	}
	f.set("Content-Length", rep.length)
	// A client that compares dates itself, as curl does, would drop the body of a 200 if its own date is not
	// earlier.
	var since time.Time
	if dates := request.Header["If-Modified-Since"]; len(dates) == 1 {
		since, _ = httpfield.ParseDate(dates[0])
	}
	if r.version.LastModified.After(since) {
		r.setDate(&f, now)
	}
	w.WriteHeader(http.StatusOK)
	if request.Method == http.MethodHead {
		return 0
	}
	var sent int64
	for _, part := range rep.Parts {
		n, err := w.Write(part)
		if sent += int64(n); err != nil {
			break // the reader has left
		}
	}
	return sent
}
