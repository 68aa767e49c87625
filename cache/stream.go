// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
)

// stream sends a version of several parts. It holds one of them at a time, whatever the reader
// takes for it, and nothing stays open in the store. A part comes from memory if that has it,
// and from the store otherwise.
type stream struct {
	feed   *Feed
	state  *feedstate.State
	coding version.Coding // for the reader
	parts  int            // of the stored form
	body   *store.StoredBody
	held   func() // gives back the bytes in hand that it had to take on its way; nil: none
}

// streamed returns a version that is read while it is sent.
func (f *Feed) streamed(s *feedstate.State, coding version.Coding, from opened) sending {
	v := &s.Feed.Version
	t := &stream{feed: f, state: s, coding: coding, body: from.body}
	if from.body == nil && len(from.rep.Parts) == 1 { // memory may not take it
		t.body = store.NewStoredBody(store.Body{Data: from.rep.Parts[0]})
	}
	var size int64
	if t.body != nil {
		t.parts, size = t.body.Parts(), t.body.Size
	} else {
		t.parts, size = len(from.rep.Parts), from.rep.Size
	}
	if coding != v.StoredCoding() {
		size = int64(v.Length)
	}
	return sending{Representation: v.Describe(coding, size), stream: t}
}

func (t *stream) part(r *http.Request, n int) ([]byte, error) {
	f := t.feed
	if rep := f.cache.memory.get(f.id, t.state, t.state.Feed.Version.StoredCoding()); rep != nil && n < len(rep.Parts) {
		return rep.Parts[n], nil
	}
	if t.body == nil { // memory has dropped it meanwhile
		body, err := f.openBody(r.Context(), t.state)
		if err != nil {
			return nil, err
		}
		t.body, t.held = body, f.cache.inHand.sending.take(f.cache.network(r), store.PartSize, true)
	}
	return t.body.Part(r.Context(), n)
}

// send writes the body of a response and returns the number of bytes. If it cannot be read to
// its end, it panics with [http.ErrAbortHandler], so that the reader does not take what it got
// for the whole.
func (t *stream) send(w http.ResponseWriter, r *http.Request) int64 {
	out := &writer{Writer: w}
	in := &partReader{next: func(n int) ([]byte, error) { return t.part(r, n) }, parts: t.parts}
	var err error
	if v := &t.state.Feed.Version; t.coding == v.StoredCoding() {
		_, err = io.Copy(out, in)
	} else {
		_, err = version.Decode(out, in, v.Length)
	}
	if t.held != nil {
		t.held()
	}
	if err == nil || out.failed {
		return out.sent // all of it, or the reader has left
	}
	if r.Context().Err() == nil {
		if in.err == nil {
			err = fmt.Errorf("%w: %w", store.ErrNoBody, err) // it was read, and cannot be decoded
		}
		t.feed.streamFailed(t.state.Version, err)
	}
	panic(http.ErrAbortHandler)
}

// streamFailed records that a version could not be read to its end. If it is still the present
// one, it is lost.
func (f *Feed) streamFailed(version uint64, err error) {
	if errors.Is(err, store.ErrNoBody) && f.reload(context.WithoutCancel(f.cache.life)) == nil {
		f.bodyLost(version, err)
		return
	}
	f.cache.logUnreadable("stored version cannot be read to its end", f.key.String(), err)
}

// writer counts what a reader was sent, and says if the reader has left. How long a reader may take nothing
// is the server's to decide.
type writer struct {
	io.Writer
	sent   int64
	failed bool
}

func (w *writer) Write(b []byte) (int, error) {
	n, err := w.Writer.Write(b)
	w.sent += int64(n)
	w.failed = w.failed || err != nil
	return n, err
}

type partReader struct {
	next  func(n int) ([]byte, error)
	parts int
	n     int
	rest  []byte // of the part before n
	err   error
}

// WriteTo implements [io.WriterTo]: parts are written without another buffer.
func (p *partReader) WriteTo(w io.Writer) (written int64, err error) {
	for ; p.n < p.parts; p.n++ {
		part, err := p.next(p.n)
		if p.err = err; err != nil {
			return written, err
		}
		n, err := w.Write(part)
		if written += int64(n); err != nil {
			return written, err
		}
	}
	return written, nil
}

func (p *partReader) Read(b []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.n == p.parts {
			return 0, io.EOF
		}
		if p.rest, p.err = p.next(p.n); p.err != nil {
			return 0, p.err
		}
		p.n++
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}
