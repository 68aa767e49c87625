// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
)

// roundTrip returns what a handler writes as a response, as a server and a client on one
// connection would. It returns when the handler has sent status and header; the body streams.
// 1xx responses and trailers are dropped: polls do not need them. If the handler returns an
// error before it writes, or panics, roundTrip returns an error.
//
// The handler runs until the body has been read or closed, or the request's context has ended.
// prepare makes the request that the handler gets.
func roundTrip(r *http.Request, prepare func(context.Context, http.ResponseWriter) *http.Request, handle func(http.ResponseWriter, *http.Request) error) (*http.Response, error) {
	ctx, stop := context.WithCancel(r.Context())
	reading, writing := io.Pipe()
	s := &responder{header: make(http.Header), body: writing, answered: make(chan struct{})}
	go func() {
		defer stop()
		s.end(func() (err error) {
			defer recovered(&err)
			return handle(s, prepare(ctx, s))
		}())
	}()
	select {
	case <-s.answered:
	case <-r.Context().Done():
		stop()
		reading.CloseWithError(context.Cause(r.Context())) // the handler may be writing
		return nil, context.Cause(r.Context())
	}
	if s.failed != nil {
		return nil, s.failed
	}
	// A handler may ignore the end of its context; the reader must not wait for it.
	context.AfterFunc(ctx, func() { writing.CloseWithError(context.Cause(ctx)) })
	s.response.Request, s.response.Body = r, &responseBody{reading, stop}
	return s.response, nil
}

// recovered turns a panic into an error. A reverse proxy panics with [http.ErrAbortHandler] when
// its backend closes the connection too early.
func recovered(err *error) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		*err = io.ErrUnexpectedEOF
	default:
		*err = &panicError{p, debug.Stack()}
	}
}

// panicError is the error of a handler that has panicked.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.value) }

// responder is the response writer of a handler. It turns what is written into a response.
type responder struct {
	header http.Header // as the handler sees it
	body   *io.PipeWriter

	answered chan struct{}  // closed when one of these is set
	response *http.Response // without a body
	failed   error

	written int64
}

func (s *responder) Header() http.Header { return s.header }

func (s *responder) WriteHeader(status int) {
	if s.response != nil || status < 200 {
		return
	}
	sent := s.header.Clone() // which the receiver owns
	for name := range sent {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(sent, name)
		}
	}
	delete(sent, "Trailer")
	length, err := strconv.ParseInt(sent.Get("Content-Length"), 10, 64)
	if err != nil || length < 0 {
		length = -1
	}
	s.response = &http.Response{
		Status: strconv.Itoa(status) + " " + http.StatusText(status), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: sent, ContentLength: length,
	}
	close(s.answered)
}

func (s *responder) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	if s.bodyless() {
		return len(p), nil // as a server does
	}
	if length := s.response.ContentLength; length >= 0 && s.written+int64(len(p)) > length {
		return 0, http.ErrContentLength
	}
	n, err := s.body.Write(p)
	s.written += int64(n)
	return n, err
}

// Flush implements [http.Flusher]. Writes are not buffered.
func (s *responder) Flush() { s.WriteHeader(http.StatusOK) }

// end ends the response with the error of the handler.
func (s *responder) end(err error) {
	if err != nil && s.response == nil {
		s.failed = err
		close(s.answered)
	}
	if err == nil {
		s.WriteHeader(http.StatusOK)
		// A server reports a body that is shorter than its Content-Length too.
		if s.response.ContentLength > s.written && !s.bodyless() {
			err = io.ErrUnexpectedEOF
		}
	}
	s.body.CloseWithError(err) // nil means io.EOF
}

func (s *responder) bodyless() bool {
	return s.response.StatusCode == http.StatusNotModified || s.response.StatusCode == http.StatusNoContent
}

// responseBody stops the handler when it is closed early.
type responseBody struct {
	*io.PipeReader
	stop context.CancelFunc
}

func (b *responseBody) Close() error {
	b.stop()
	return b.PipeReader.Close()
}

// Interface guard.
var _ http.Flusher = (*responder)(nil)
