// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/policy"
)

// pass lets the origin answer a reader's request.
func (s *Shield) pass(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	s.engine.ShieldRequests().Count(poller.ResultPassed, 0)
	poller.Report(r, poller.ResultPassed, "", "")
	return s.origin.serve(w, r, next)
}

// passAndDetect lets the origin answer a reader's request. If the response is a feed, the
// next request for the key causes a poll.
func (s *Shield) passAndDetect(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, key string) error {
	return s.pass(newDetectingWriter(w, func() {
		now := time.Now()
		if e := s.entries.add(key); !e.bypasses(now) {
			e.feed.Store(true)
		}
	}), r, next)
}

// detectingWriter passes a response on, and detects whether it is a feed.
type detectingWriter struct {
	*caddyhttp.ResponseWriterWrapper
	found       func() // called if it is a feed
	prefix      []byte // of the body
	wroteHeader bool
	done        bool // the detection has ended
}

func newDetectingWriter(w http.ResponseWriter, found func()) *detectingWriter {
	return &detectingWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, found: found}
}

// WriteHeader implements [http.ResponseWriter].
func (w *detectingWriter) WriteHeader(status int) {
	if status >= 200 && !w.wroteHeader {
		w.wroteHeader = true
		h := w.Header()
		control := policy.ParseCacheControl(h["Cache-Control"])
		compressed, contentType := h.Get("Content-Encoding") != "", h.Get("Content-Type")
		w.done = status != http.StatusOK || compressed && !feedType(contentType) || neverFeed(contentType) ||
			control.Has("private") || control.Has("no-store")
		if !w.done && compressed {
			w.end(isFeed)
		}
	}
	w.ResponseWriterWrapper.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (w *detectingWriter) Write(p []byte) (int, error) {
	if !w.wroteHeader {
		w.WriteHeader(http.StatusOK)
	}
	w.detect(p)
	return w.ResponseWriterWrapper.Write(p)
}

// ReadFrom implements [io.ReaderFrom]. After the detection, the rest of a file is sent as
// without this writer, by sendfile for example.
func (w *detectingWriter) ReadFrom(r io.Reader) (n int64, err error) {
	for !w.done {
		var part [512]byte
		read, err := r.Read(part[:])
		if read > 0 {
			written, err := w.Write(part[:read])
			n += int64(written)
			if err != nil {
				return n, err
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	rest, err := w.ResponseWriterWrapper.ReadFrom(r)
	return n + rest, err
}

func (w *detectingWriter) detect(p []byte) {
	if w.done {
		return
	}
	w.prefix = append(w.prefix, p[:min(len(p), prefixSize)]...)
	if d := detect(w.prefix, false); d != unknown {
		w.end(d)
	}
}

func (w *detectingWriter) end(d detection) {
	w.done, w.prefix = true, nil
	if d == isFeed {
		w.found()
	}
}
