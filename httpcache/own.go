// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// own answers with the reader's own request, and nothing between reader and origin
// but a look at the header: bodies stream, and trailers, 1xx and upgrades pass.
func (x *exchange) own(why string) error {
	return x.target.Own(&ownWriter{ResponseWriter: x.w, x: x, why: why}, x.r)
}

// ownWriter is the writer of an answer that is one reader's own.
type ownWriter struct {
	http.ResponseWriter
	x    *exchange
	why  string
	seen bool
}

// WriteHeader notes what the answer means for what is stored. Its reader must not
// see it before.
func (w *ownWriter) WriteHeader(status int) {
	if status >= 200 && !w.seen {
		w.seen = true
		w.x.learn(status, w.Header())
		cacheStatus{fwd: w.why, fwdStatus: status}.add(w.Header(), time.Time{})
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *ownWriter) begin() {
	if !w.seen {
		w.WriteHeader(http.StatusOK)
	}
}

func (w *ownWriter) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// ReadFrom lets the writer below copy in its own way, such as by sendfile.
func (w *ownWriter) ReadFrom(from io.Reader) (int64, error) {
	w.begin()
	return io.Copy(w.ResponseWriter, from)
}

// FlushError is what [http.ResponseController] looks for.
func (w *ownWriter) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements [http.Flusher].
func (w *ownWriter) Flush() { _ = w.FlushError() }

// Unwrap gives an [http.ResponseController] the rest, such as Hijack.
func (w *ownWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// learn draws from an answer to a reader's own request what may be drawn: what an
// unsafe method has changed is forgotten, and what could be stored after all is
// fetched for all the next time.
func (x *exchange) learn(status int, header http.Header) {
	if x.r.Method != http.MethodGet {
		x.invalidate(status, header)
		return
	}
	stored := x.cache.store.get(x.target.Key)
	m := stored.markFor(x.r)
	if m == nil || status != http.StatusOK && status != http.StatusPartialContent {
		return
	}
	now := time.Now()
	if e := newEntry(x.r, http.StatusOK, header, now, now); e == nil || !e.rules.explicit && hasCredentials(x.r) {
		return
	}
	size := sizeOf(status, header)
	if size > x.cache.maxBody || m.tooLarge && size < 0 && m.holds(header) {
		return
	}
	x.cache.store.unmark(x.target, x.r)
}

// holds reports whether an answer has the validators of the one that left the mark.
func (m *mark) holds(header http.Header) bool {
	return m.etag+m.modified != "" && m.etag == header.Get("Etag") && m.modified == header.Get("Last-Modified")
}

// sizeOf is the size of the complete representation that a header describes; -1:
// it does not say.
func sizeOf(status int, header http.Header) int64 {
	text := header.Get("Content-Length")
	if status == http.StatusPartialContent {
		_, text, _ = strings.Cut(header.Get("Content-Range"), "/")
	}
	size, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return size
}
