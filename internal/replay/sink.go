// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"net/http"
)

// sink measures a response and discards it. It implements [http.ResponseWriter], and is
// reused.
type sink struct {
	header http.Header
	status int
	body   int64 // bytes
	short  int64 // size of the header fields of a refusal, which are not in header; otherwise 0
}

// serverFields are the header fields that the server adds to every answer.
const serverFields = "Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nServer: Caddy\r\n"

func (s *sink) reset() {
	clear(s.header)
	s.status, s.body, s.short = 0, 0, 0
}

// Header implements [http.ResponseWriter].
func (s *sink) Header() http.Header { return s.header }

// WriteHeader implements [http.ResponseWriter].
func (s *sink) WriteHeader(status int) { s.status = status }

// Write implements [http.ResponseWriter].
func (s *sink) Write(b []byte) (int, error) {
	s.body += int64(len(b))
	return len(b), nil
}

// head returns the size of the status line and the header fields, in bytes.
func (s *sink) head() int64 { return wireSize(s.status, s.header) + s.short + int64(len(serverFields)) }

// The header fields of a refusal: the constant ones, and two whose values vary.
const (
	refusalFields = "Content-Type: text/plain; charset=utf-8\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
	lengthField   = "Content-Length: 00\r\n"
	retryField    = "Retry-After: \r\n"
)

// refuse replaces the answer by a short text, as a shield sends it. wait is the value of
// Retry-After in seconds; 0 omits the field.
func (s *sink) refuse(method string, status int, reason string, wait int64) {
	s.reset()
	s.status = status
	if method != http.MethodHead {
		s.body = int64(len(reason) + 1)
	}
	s.short = int64(len(refusalFields) + len(lengthField))
	if wait > 0 {
		s.short += int64(len(retryField))
		for ; wait > 0; wait /= 10 {
			s.short++
		}
	}
}
