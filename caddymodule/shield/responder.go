// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
)

// roundTrip makes the response of what a handler writes, as a server and a client
// on one connection would: it returns when the handler has sent status and header,
// and the body streams while the handler writes it. 1xx responses and trailers are
// dropped, as polls have no use for them. An error that the handler returns before it has written anything is the error of
// the round trip. A handler that panics has failed, and nothing else has.
//
// The handler runs until the body has been read or closed, or the request's context
// has ended. prepare makes the request that the handler gets.
func roundTrip(r *http.Request, prepare func(context.Context, http.ResponseWriter) (*http.Request, error), handle func(http.ResponseWriter, *http.Request) error) (*http.Response, error) {
	ctx, stop := context.WithCancel(r.Context())
	reading, writing := io.Pipe()
	s := &responder{request: r, header: make(http.Header), body: writing, began: make(chan struct{}), length: -1}
	go func() {
		defer stop()
		s.end(func() (err error) {
			defer recovered(&err)
			in, err := prepare(ctx, s)
			if err != nil {
				return err
			}
			return handle(s, in)
		}())
	}()
	select {
	case <-s.began:
	case <-r.Context().Done():
		stop()
		reading.CloseWithError(context.Cause(r.Context())) // it may be writing
		return nil, context.Cause(r.Context())
	}
	if s.failed != nil {
		return nil, s.failed
	}
	// A handler need not notice that time is up, whoever reads does.
	context.AfterFunc(ctx, func() { writing.CloseWithError(context.Cause(ctx)) })
	return &http.Response{
		Status: strconv.Itoa(s.status) + " " + http.StatusText(s.status), StatusCode: s.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: s.sent, ContentLength: s.length, Request: r,
		Body: &responseBody{reading, stop},
	}, nil
}

// recovered makes an error of a panic. A reverse proxy panics with
// [http.ErrAbortHandler] when its backend breaks off.
func recovered(err *error) {
	switch p := recover(); p {
	case nil:
	case http.ErrAbortHandler:
		*err = io.ErrUnexpectedEOF
	default:
		*err = &panicError{p, debug.Stack()}
	}
}

// panicError is a handler that panicked.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("handler panicked: %v", e.value) }

// responder is the writer of a handler whose answer becomes a response.
type responder struct {
	request *http.Request
	header  http.Header // as the handler sees it
	body    *io.PipeWriter

	began   chan struct{} // closed when what follows is set, up to failed
	started bool          // the handler's goroutine alone writes and reads it
	status  int
	sent    http.Header // the header as it was when the answer began: the receiver's
	length  int64       // of the body, as the header said; -1: it did not
	failed  error

	written int64
}

// Header implements [http.ResponseWriter].
func (s *responder) Header() http.Header { return s.header }

// WriteHeader implements [http.ResponseWriter].
func (s *responder) WriteHeader(status int) {
	if s.started || status < 200 {
		return
	}
	s.started, s.status, s.sent = true, status, s.header.Clone()
	for name := range s.sent {
		if strings.HasPrefix(name, http.TrailerPrefix) {
			delete(s.sent, name)
		}
	}
	delete(s.sent, "Trailer")
	if n, err := strconv.ParseInt(s.sent.Get("Content-Length"), 10, 64); err == nil && n >= 0 {
		s.length = n
	}
	close(s.began)
}

// Write implements [http.ResponseWriter].
func (s *responder) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	if s.bodyless() {
		return len(p), nil // as a server does
	}
	if s.length >= 0 && s.written+int64(len(p)) > s.length {
		return 0, http.ErrContentLength
	}
	n, err := s.body.Write(p)
	s.written += int64(n)
	return n, err
}

// Flush implements [http.Flusher]: what is written is on its way already.
func (s *responder) Flush() { s.WriteHeader(http.StatusOK) }

// end ends the answer with what the handler returned.
func (s *responder) end(err error) {
	if err != nil && !s.started {
		s.started, s.failed = true, err
		close(s.began)
	}
	if err == nil {
		s.WriteHeader(http.StatusOK)
		// As a server would notice: a body that is shorter than it was said to be has
		// broken off.
		if s.length > s.written && !s.bodyless() {
			err = io.ErrUnexpectedEOF
		}
	}
	s.body.CloseWithError(err) // nil: the end of the body
}

func (s *responder) bodyless() bool {
	return s.request.Method == http.MethodHead || s.status == http.StatusNotModified || s.status == http.StatusNoContent
}

// responseBody ends the handler when it is closed before its end.
type responseBody struct {
	*io.PipeReader
	stop context.CancelFunc
}

func (b *responseBody) Close() error {
	b.stop()
	return b.PipeReader.CloseWithError(errBodyClosed)
}

var errBodyClosed = errors.New("nobody reads the rest of the answer")

// Interface guard.
var _ http.Flusher = (*responder)(nil)
