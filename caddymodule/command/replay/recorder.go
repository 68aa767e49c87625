// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"net/http"
	"strconv"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// recorder measures a response and discards it. It implements [http.ResponseWriter], and
// is reused.
type recorder struct {
	header http.Header
	status int
	body   int64 // bytes
}

func (w *recorder) reset() {
	clear(w.header)
	w.status, w.body = 0, 0
}

func (w *recorder) Header() http.Header { return w.header }

func (w *recorder) WriteHeader(status int) { w.status = status }

func (w *recorder) Write(b []byte) (int, error) {
	w.body += int64(len(b))
	return len(b), nil
}

// serverFields are the header fields that the server adds to every answer.
const serverFields = "Date: Mon, 02 Jan 2006 15:04:05 GMT\r\nServer: Caddy\r\n"

// size returns the bytes of the status line and the header fields.
func (w *recorder) size() int64 { return httpfield.Size(w.status, w.header) + int64(len(serverFields)) }

// refuse replaces the answer by a short text, as a shield sends it. wait is the value of
// Retry-After in seconds; 0 omits the field.
func (w *recorder) refuse(method string, status int, reason string, wait int64) {
	w.reset()
	w.status = status
	if method != http.MethodHead {
		w.body = int64(len(reason) + 1)
	}
	w.header.Set("Content-Type", "text/plain; charset=utf-8")
	w.header.Set("Cache-Control", "no-store")
	w.header.Set("X-Content-Type-Options", "nosniff")
	w.header.Set("Content-Length", strconv.Itoa(len(reason)+1))
	if wait > 0 {
		w.header.Set("Retry-After", strconv.FormatInt(wait, 10))
	}
}
