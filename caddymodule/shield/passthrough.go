// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/caddymodule/door"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/policy"
)

// pass lets the origin answer a reader's request.
func (s *Shield) pass(w http.ResponseWriter, r *door.Request, next caddyhttp.Handler) error {
	s.requests.Report(r, poller.ResultPassed, "", "")
	return s.origin.serve(w, r.Request, next)
}

// passAndDetect lets the origin answer a reader's request. If the response is a feed, the
// next request for the key causes a poll.
func (s *Shield) passAndDetect(w http.ResponseWriter, r *door.Request, next caddyhttp.Handler, key string) error {
	found := func() {
		if e := s.entries.add(key); !e.bypasses(time.Now()) {
			e.feed.Store(true)
		}
	}
	return s.pass(&detectingWriter{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, found: found}, r, next)
}

// detectingWriter passes a response on, and detects whether it is a feed.
type detectingWriter struct {
	*caddyhttp.ResponseWriterWrapper
	detector
	found       func() // called if it is a feed
	wroteHeader bool
}

func (w *detectingWriter) WriteHeader(status int) {
	if status >= 200 && !w.wroteHeader {
		w.wroteHeader = true
		h := w.Header()
		control := policy.ParseCacheControl(h["Cache-Control"])
		compressed, contentType := h.Get("Content-Encoding") != "", h.Get("Content-Type")
		switch {
		case status != http.StatusOK, compressed && !feedType(contentType), neverFeed(contentType), control.Has("private"), control.Has("no-store"):
			w.result = notFeed
		case compressed:
			w.result = isFeed
			w.found()
		}
	}
	w.ResponseWriterWrapper.WriteHeader(status)
}

func (w *detectingWriter) Write(p []byte) (int, error) {
	if !w.wroteHeader {
		w.WriteHeader(http.StatusOK)
	}
	if w.result == unknown && w.add(p, false) == isFeed {
		w.found()
	}
	return w.ResponseWriterWrapper.Write(p)
}

// ReadFrom implements [io.ReaderFrom]. After the detection, the rest of a file is sent as
// without this writer, by sendfile for example.
func (w *detectingWriter) ReadFrom(r io.Reader) (int64, error) {
	n, err := io.CopyN(struct{ io.Writer }{w}, r, prefixSize)
	if errors.Is(err, io.EOF) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	rest, err := w.ResponseWriterWrapper.ReadFrom(r)
	return n + rest, err
}
