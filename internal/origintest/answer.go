// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package origintest

import (
	"cmp"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Answer is a response of an origin.
type Answer struct {
	Status int // zero: 200
	Header http.Header
	Body   string

	// Conditional makes it a 304 without a body if the request's If-None-Match or
	// If-Modified-Since has the ETag or Last-Modified of Header.
	Conditional bool

	Delay time.Duration // before the response
	Err   error         // the connection breaks instead of a response
}

// OK is a 200 with a body. The fields are names and values in turn. The Content-Type is
// application/rss+xml if they do not set it, and a field with an empty value is left out.
func OK(body string, fields ...string) Answer {
	a := Status(http.StatusOK, append([]string{"Content-Type", "application/rss+xml"}, fields...)...)
	a.Body = body
	return a
}

// Versioned is OK with this ETag, and 304 for those who have it already.
func Versioned(body, etag string, fields ...string) Answer {
	a := OK(body, append([]string{"ETag", etag}, fields...)...)
	a.Conditional = true
	return a
}

// Status is a response without a body.
func Status(status int, fields ...string) Answer {
	a := Answer{Status: status, Header: make(http.Header)}
	for i := 0; i < len(fields); i += 2 {
		a.Header.Set(fields[i], fields[i+1])
	}
	return a
}

// Redirect is a redirect to a URL.
func Redirect(status int, to string, fields ...string) Answer {
	return Status(status, append([]string{"Location", to}, fields...)...)
}

// Fail breaks the connection.
func Fail(err error) Answer { return Answer{Err: err} }

// After is the answer with a delay.
func (a Answer) After(delay time.Duration) Answer {
	a.Delay = delay
	return a
}

// NotModified reports whether the answer to this request is a 304. An If-None-Match
// decides alone (RFC 9110 section 13.2.2), and tags are compared byte for byte: readers
// and proxies are to send back exactly what they got.
func (a Answer) NotModified(r *http.Request) bool {
	if !a.Conditional || a.status() != http.StatusOK {
		return false
	}
	if tag := r.Header.Get("If-None-Match"); tag != "" {
		for each := range strings.SplitSeq(tag, ",") {
			if strings.TrimSpace(each) == a.Header.Get("ETag") {
				return true
			}
		}
		return false
	}
	date := r.Header.Get("If-Modified-Since")
	return date != "" && date == a.Header.Get("Last-Modified")
}

func (a Answer) status() int { return cmp.Or(a.Status, http.StatusOK) }

// header is a copy of the fields that have values.
func (a Answer) header() http.Header {
	h := make(http.Header, len(a.Header))
	for name := range a.Header {
		if a.Header.Get(name) != "" {
			h[name] = slices.Clone(a.Header[name])
		}
	}
	return h
}

// write sends the answer to a request.
func (a Answer) write(w http.ResponseWriter, r *http.Request) {
	if a.Err != nil {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), a.header())
	w.WriteHeader(a.status())
	if r.Method != http.MethodHead {
		_, _ = io.WriteString(w, a.Body)
	}
}

// response is the answer to a request, for a round tripper.
func (a Answer) response(r *http.Request) (*http.Response, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	return &http.Response{
		StatusCode: a.status(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: a.header(), Body: io.NopCloser(strings.NewReader(a.Body)), ContentLength: int64(len(a.Body)),
	}, nil
}
