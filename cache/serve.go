// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"net/http"
	"time"
)

// coldPatience is how long a reader waits for the first poll of a feed. Longer
// than a poll takes with the default timeout; what takes longer still is told to
// come back.
const coldPatience = time.Minute

// Serve answers a GET or HEAD with the feed. On a hit it takes no lock, reads no
// store, parses no document and compresses nothing. Where the next poll is due,
// the reader waits for it a short while, then gets the last good version.
//
// It fails with an [Unavailable], and has written nothing, where there is no
// version to serve.
func (f *Feed) Serve(w http.ResponseWriter, r *http.Request) (Sent, error) {
	return f.ServeAfter(Waited{}, w, r)
}

// Waited is what a reader has waited for before it is served; the zero value:
// for nothing.
type Waited struct{ how served }

// ServeAfter is as [Feed.Serve], for a reader who has waited in [Feed.Await].
func (f *Feed) ServeAfter(waited Waited, w http.ResponseWriter, r *http.Request) (Sent, error) {
	now := f.cache.now()
	f.touch(now)
	if f.forgotten.Load() {
		return f.successor(waited, w, r)
	}
	s, how := f.state.Load(), waited.how
	if s.due(now) {
		s, how = f.refreshed(r.Context(), s, now)
		now = f.cache.now()
	}
	p := f.content(r.Context(), s)
	if p == nil {
		if p, s, how = f.first(r.Context(), s, how); p == nil {
			if f.forgotten.Load() { // while this reader was waiting
				return f.successor(waited, w, r)
			}
			return Sent{}, f.unavailable(s, f.cache.now())
		}
		now = f.cache.now()
	}
	return f.write(w, r, p, s, how, now), nil
}

// successor serves a reader who holds a feed that was forgotten in the meantime by
// the feed that is known under its URL now.
func (f *Feed) successor(waited Waited, w http.ResponseWriter, r *http.Request) (Sent, error) {
	now, err := f.cache.Feed(f.url)
	if err != nil {
		return Sent{}, err
	}
	return now.ServeAfter(waited, w, r)
}

// Sent is what a reader was sent.
type Sent struct {
	Status  int    // 200 or 304
	Bytes   int64  // of body
	Forward string // the poll that the reader has waited for: stale or miss, as in Cache-Status; empty: a hit
}

// touch remembers that a reader has asked. It wakes the prefetching of a feed
// that had gone to sleep.
func (f *Feed) touch(now time.Time) {
	// To the minute: one shared write per minute, not per request. A clock that has
	// been set back is taken as it is, or nobody would seem to ask for years.
	if t := now.Unix(); t-f.asked.Load() >= 60 || t < f.asked.Load() {
		idle := f.idle(now)
		f.asked.Store(t)
		if idle {
			f.cache.agenda.put(f, f.state.Load().Next)
		}
	}
}

// refreshed waits for the poll that is due, for a short while.
func (f *Feed) refreshed(ctx context.Context, s *state, now time.Time) (*state, served) {
	fl, joined := f.board(false)
	if fl == nil {
		return s, served{}
	}
	d := patience
	if s.Version == 0 {
		d = coldPatience
	}
	done := fl.wait(ctx, d, now)
	return f.state.Load(), forwarded(s, f.state.Load(), joined, done)
}

// Await waits for the very first poll of a feed, and reports whether there is a
// version then. A later one of a feed without a version it starts only: what has
// once turned out to be no feed keeps nobody waiting.
func (f *Feed) Await(ctx context.Context) (waited Waited, some bool) {
	now := f.cache.now()
	switch s := f.state.Load(); {
	case s.Version != 0 || !s.due(now):
	case s.memo.Last.At.IsZero():
		_, waited.how = f.refreshed(ctx, s, now)
	default:
		f.board(false)
	}
	return waited, f.state.Load().Version != 0
}

// first waits for the first poll of a cold feed that is under way, though it is
// not due any more as somebody has just reserved it.
func (f *Feed) first(ctx context.Context, s *state, how served) (*prepared, *state, served) {
	fl := f.underWay()
	if fl == nil {
		now := f.state.Load()
		if now == s {
			return nil, s, how
		}
		return f.content(ctx, now), now, how // it has just landed
	}
	done := fl.wait(ctx, coldPatience, f.cache.now())
	now := f.state.Load()
	return f.content(ctx, now), now, forwarded(s, now, true, done)
}

// write sends the version as the request's conditions and codings want it.
func (f *Feed) write(w http.ResponseWriter, r *http.Request, p *prepared, s *state, how served, now time.Time) Sent {
	rep := p.negotiate(r.Header)
	h := w.Header()
	f.headers(h, p, s, how, now)
	h["Etag"] = rep.etag
	if p.notModified(r.Header) {
		// RFC 9110 section 15.4.5: the header fields of the 200, apart from those that
		// describe a body which is not there.
		w.WriteHeader(http.StatusNotModified)
		return Sent{Status: http.StatusNotModified, Forward: how.forward}
	}
	if rep.encoding != nil {
		h["Content-Encoding"] = rep.encoding
	}
	h["Content-Length"] = rep.length
	w.WriteHeader(http.StatusOK)
	sent := Sent{Status: http.StatusOK, Forward: how.forward}
	if r.Method != http.MethodHead {
		n, _ := w.Write(rep.body) // the reader may have left; nobody is there to be told
		sent.Bytes = int64(n)
	}
	return sent
}
