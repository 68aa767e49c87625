// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"

	"github.com/feedpollard/pollard/internal/markup"
)

// charsetWriter adds the charset of a feed to its Content-Type, for a browser that shows it: browsers
// take text of a type that is not their own for Windows-1252, whatever the XML declaration says.
type charsetWriter struct {
	http.ResponseWriter
	status int // of the header that waits for the first bytes; 0: none waits
}

func (w *charsetWriter) WriteHeader(status int) {
	if status != http.StatusOK {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.status = status
}

func (w *charsetWriter) Write(body []byte) (int, error) {
	w.sendHeader(body)
	return w.ResponseWriter.Write(body)
}

// sendHeader sends the header that waits, if one does.
func (w *charsetWriter) sendHeader(body []byte) {
	if w.status == 0 {
		return
	}
	h := w.Header()
	if kind := h.Get("Content-Type"); len(body) > 0 && h.Get("Content-Encoding") == "" && !strings.Contains(kind, "charset") {
		h.Set("Content-Type", kind+"; charset="+markup.Declared(body))
	}
	w.ResponseWriter.WriteHeader(w.status)
	w.status = 0
}

// Unwrap is for [http.ResponseController].
func (w *charsetWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
