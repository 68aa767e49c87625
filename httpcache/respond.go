// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// reply answers with an entry.
func (x *exchange) reply(e *entry, status cacheStatus) error {
	return x.replyFrom(e, captured(e.body), int64(len(e.body)), status)
}

// replyFrom answers with an entry whose body may still be on its way.
// Length is that of the body; -1: not known yet.
func (x *exchange) replyFrom(e *entry, body *capture, length int64, status cacheStatus) error {
	now := time.Now()
	header := x.begin(e, status, now)
	if notModified(x.r.Header, e.status, e.header, now) {
		return x.replyNotModified()
	}
	whole, state, _ := body.from(0)
	if state == complete {
		if x.wantsRange() && e.status == http.StatusOK {
			return x.replyRange(e.header, bytes.NewReader(whole), now)
		}
		length = int64(len(whole))
	}
	if length >= 0 && hasBody(e.status) {
		header.Set("Content-Length", strconv.FormatInt(length, 10))
	}
	return x.stream(e.status, body, length, nil)
}

// begin sets the header of an answer with an entry.
func (x *exchange) begin(e *entry, status cacheStatus, now time.Time) http.Header {
	header := x.w.Header()
	setHeader(header, e.header)
	// RFC 9111 section 5.1.
	header.Set("Age", strconv.FormatInt(int64(e.currentAge(now)/time.Second), 10))
	status.add(header, now)
	return header
}

// replyNotModified answers with a 304, after the header was set.
func (x *exchange) replyNotModified() error {
	withoutRepresentation(x.w.Header())
	x.w.WriteHeader(http.StatusNotModified)
	return nil
}

// wantsRange reports whether a part was asked for. Other units than bytes are
// ignored (RFC 9110 section 14.2).
func (x *exchange) wantsRange() bool {
	return x.r.Method == http.MethodGet && strings.HasPrefix(x.r.Header.Get("Range"), "bytes=")
}

// replyRange answers with the ranges asked for, of a representation with a header
// (RFC 9110 section 14.2). The conditions have been evaluated: only Range and
// If-Range are left.
func (x *exchange) replyRange(header http.Header, content io.ReadSeeker, now time.Time) error {
	request := &http.Request{Method: http.MethodGet, Header: http.Header{
		"Range":    x.r.Header["Range"],
		"If-Range": x.r.Header["If-Range"],
	}}
	modified, err := dateOf(header, "Last-Modified", now)
	if err != nil {
		modified = time.Time{}
	}
	http.ServeContent(x.w, request, "", modified, content)
	return nil
}

// relay answers with what the origin said. What was left out of the request, so
// that all can be stored, is made up for where it is stored: the reader's
// conditions and range.
func (x *exchange) relay(t *transfer, status cacheStatus) error {
	now := time.Now()
	stored := t.plain && t.entry != nil
	not := stored && notModified(x.r.Header, t.status, t.header, now)
	ranged := stored && !not && t.status == http.StatusOK && x.wantsRange()
	if ranged && x.awaitBody(t.body, nil) == growing {
		return x.gone()
	}
	header := x.w.Header()
	setHeader(header, t.header)
	status.add(header, now)
	if not {
		return x.replyNotModified()
	}
	if whole, state, _ := t.body.from(0); ranged && state == complete {
		delete(header, "Content-Length")
		return x.replyRange(t.header, bytes.NewReader(whole), now)
	}
	if err := x.stream(t.status, t.body, t.length, t.cancel); err != nil {
		return err
	}
	for name, values := range t.answer.Trailer {
		for _, value := range values {
			header.Add(http.TrailerPrefix+name, value)
		}
	}
	return nil
}

// stream writes a body as it arrives. What is not captured of it is for the reader who
// caused the transfer; cancel ends that. For others it is nil.
func (x *exchange) stream(status int, body *capture, length int64, cancel func()) error {
	x.w.WriteHeader(status)
	if x.r.Method == http.MethodHead || !hasBody(status) {
		return nil
	}
	flush := http.NewResponseController(x.w).Flush
	for written := 0; ; {
		chunk, state, changed := body.from(written)
		end := int64(written + len(chunk))
		switch {
		case state == growing && (len(chunk) == 0 || end == length):
			// Who has the last byte may ask again at once: it waits until the answer is stored.
			if written > 0 && end != length {
				_ = flush()
			}
			select {
			case <-changed:
			case <-x.r.Context().Done():
				return nil
			}
			continue
		case len(chunk) > 0:
			if _, err := x.w.Write(chunk); err != nil {
				return nil // the reader left
			}
			written += len(chunk)
		case state == complete:
			return nil
		case state == broken, cancel == nil:
			panic(http.ErrAbortHandler) // the reader has to learn that it is not all
		default:
			return x.streamRest(body.rest, flush, cancel)
		}
	}
}

// streamRest copies what is not captured.
func (x *exchange) streamRest(rest io.Reader, flush func() error, cancel func()) error {
	if rest == nil {
		panic(http.ErrAbortHandler)
	}
	// Nobody else waits for it: it ends with its reader, also while nothing comes.
	defer context.AfterFunc(x.r.Context(), cancel)()
	buffer := make([]byte, 32<<10)
	for {
		n, err := rest.Read(buffer)
		if n > 0 {
			if _, err := x.w.Write(buffer[:n]); err != nil {
				return nil
			}
			if err == nil {
				_ = flush()
			}
		}
		if err == io.EOF {
			return nil
		}
		if x.r.Context().Err() != nil {
			return nil
		}
		if err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// hasBody reports whether an answer with a status can have a body (RFC 9110 section 6.4.1).
func hasBody(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// setHeader sets fields of an answer. The values are copied: handlers further up
// change them in place.
func setHeader(to, from http.Header) {
	maps.Copy(to, from.Clone())
	if _, ok := to["Content-Type"]; !ok {
		to["Content-Type"] = nil // else net/http would guess one
	}
}
