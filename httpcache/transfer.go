// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
)

// transfer is one shared fetch from the origin. It runs in a goroutine of its own,
// so that it can outlive the reader who caused it.
type transfer struct {
	sent        *http.Request // what the origin is asked: decides the secondary key
	watch       *watch        // of the key, since it began
	collapseKey string        // the key under which others join it; empty: none can
	stale       *entry        // what may be served if the origin fails, or nil
	tied        bool          // ends with its reader, and is shared with nobody
	plain       bool          // the reader's conditions are still to be evaluated
	cancel      context.CancelFunc
	ended       <-chan struct{} // closed by cancel: nothing more is fetched

	interim chan interim
	settled chan struct{} // closed when the origin's answer, or its failure, is known

	// Written before settled is closed, and read after it.
	err     error
	status  int
	answer  *http.Response // its trailer comes with the end of the body
	header  http.Header    // for the reader who caused it
	length  int64          // of the body; -1: not known
	body    *capture
	judged  *entry // what others may be answered with, if there is room for it; nil: nothing
	entry   *entry // judged, if it is on its way into the store
	shared  bool   // entry is for those who wait for it, too
	renewed *entry // the stored entry that a 304 confirmed, as it is now, with its body
}

// start sends the request of a shared fetch.
func (c *Cache) start(x *exchange, f *forward, stale *entry, tied bool) *transfer {
	t := &transfer{
		watch: c.store.watch(x.target), stale: stale, tied: tied, plain: f.plain,
		interim: make(chan interim, 8), settled: make(chan struct{}), body: newCapture(),
	}
	ctx, cancel := context.WithCancel(c.life)
	t.cancel, t.ended = cancel, ctx.Done()
	f.Request = f.WithContext(t.traceInterim(ctx))
	t.sent = f.Request
	counted := c.begin()
	go func() {
		c.perform(t, f, x.target.Shared)
		c.collapsing.remove(t)
		c.store.unwatch(t.watch)
		if counted {
			c.wg.Done()
		}
	}()
	return t
}

// leave says that the reader who caused a transfer needs no more of it. What can
// be stored is fetched to its end then, within a time limit. It can be called twice.
func (c *Cache) leave(t *transfer) {
	rest := t.body.abandon()
	switch {
	case rest != nil:
		rest.Close()
		t.cancel()
	case t.tied:
		t.cancel()
	default:
		select {
		case <-t.ended:
		default:
			time.AfterFunc(detachedLimit, t.cancel)
		}
	}
}

// perform is the whole of a transfer: ask, judge the answer, store it.
func (c *Cache) perform(t *transfer, f *forward, origin http.RoundTripper) {
	sent := time.Now()
	answer, err := roundTrip(origin, f.Request)
	if p := f.completing; p != nil && err == nil {
		switch {
		case p.continuedBy(answer):
			p.complete(answer)
		case answer.StatusCode == http.StatusPartialContent, answer.StatusCode == http.StatusRequestedRangeNotSatisfiable:
			answer.Body.Close()
			f.whole()
			answer, err = roundTrip(origin, f.Request)
		}
	}
	received := time.Now()
	if err != nil {
		c.settle(t, err)
		t.cancel()
		return
	}
	httpfield.RemoveHopByHop(answer.Header)
	t.answer, t.status, t.header, t.length = answer, answer.StatusCode, answer.Header, answer.ContentLength

	switch {
	case t.status == http.StatusNotModified && f.validating != nil:
		answer.Body.Close()
		c.renew(t, f.validating, sent, received)
		c.settle(t, nil)
		t.cancel()
		return
	case isFailure(t.status) && t.stale != nil && t.stale.reusableOnError(received):
		// It must not take the place of what is served instead, whatever its lifetime.
	case t.plain, t.status == http.StatusOK, t.status == http.StatusPartialContent:
		// Under a reader's conditions other answers are good for nobody else.
		t.judged = newEntry(t.sent, t.status, t.header, sent, received)
		if t.judged != nil && c.reserve(t.length) {
			t.entry = t.judged
			t.shared = !t.tied && t.entry.shareable(received)
			c.fill(t, answer.Body)
			return
		}
		c.forgo(t, t.length > c.maxBody)
	}
	c.pass(t, nil, answer.Body)
	c.settle(t, nil)
}

// roundTrip asks the origin. A panic on the way, which net/http catches in a
// reader's goroutine and nowhere else, is an error.
func roundTrip(origin http.RoundTripper, out *http.Request) (answer *http.Response, err error) {
	defer func() {
		if r := recover(); r != nil {
			answer, err = nil, fmt.Errorf("asking the origin: panic: %v\n%s", r, debug.Stack())
		}
	}()
	answer, err = origin.RoundTrip(out)
	if err == nil && answer.Body == nil {
		answer.Body = http.NoBody
	}
	return answer, err
}

// settle makes the answer known to those who wait for it. It can be called twice.
func (c *Cache) settle(t *transfer, err error) {
	select {
	case <-t.settled:
		return
	default:
	}
	t.err = err
	if err != nil {
		c.collapsing.remove(t) // whoever asks after the failure asks anew
	}
	close(t.settled)
}

// pass leaves the body, from what was read of it on, to the reader of a transfer.
func (c *Cache) pass(t *transfer, read []byte, body io.ReadCloser) {
	if !t.body.hand(read, body) {
		body.Close()
		t.cancel()
	}
}

// fill takes a body in and stores it, if it comes whole. The answer is made known
// with its first bytes: an origin that breaks off before them has failed to
// answer, and something stale may do.
func (c *Cache) fill(t *transfer, body io.ReadCloser) {
	reserved := max(0, t.length)
	defer func() { c.capturing.Add(-reserved) }()
	t.body.expect(reserved)
	buffer := make([]byte, 32<<10)
	for size := int64(0); ; {
		n, err := body.Read(buffer)
		size += int64(n)
		if size > reserved {
			room := min(max(2*reserved, size), c.maxBody)
			if t.length >= 0 || size > c.maxBody || !c.reserve(room-reserved) {
				c.forgo(t, size > c.maxBody)
				c.pass(t, buffer[:n], body)
				break
			}
			reserved = room
			t.body.expect(room)
		}
		if n > 0 {
			t.body.append(buffer[:n])
		}
		if err == nil {
			if n > 0 {
				c.settle(t, nil)
			}
			continue
		}
		body.Close()
		t.cancel()
		switch {
		case errors.Is(err, io.EOF) && (t.length < 0 || size == t.length):
			c.keep(t, t.entry.with(t.body.whole()))
			t.body.end(complete)
		case size == 0:
			c.settle(t, fmt.Errorf("reading the origin's answer: %w", err))
		default:
			t.body.end(broken)
		}
		break
	}
	c.settle(t, nil)
}

// reserve takes room for bytes on their way into the store. It is false where the
// body would be too large, or too much is under way; -1 is a length not known.
func (c *Cache) reserve(length int64) bool {
	if length > c.maxBody {
		return false
	}
	if c.capturing.Add(max(0, length)) > c.capture {
		c.capturing.Add(-max(0, length))
		return false
	}
	return true
}

// keep stores what a transfer brought.
func (c *Cache) keep(t *transfer, e *entry) {
	if e.isPart() {
		e = e.joined(c.store.get(t.watch.key).findPart(t.sent), c.maxBody)
	}
	c.store.put(t.watch, t.sent, e, !e.shareable(time.Now()))
}

// forgo remembers that an answer could not be stored, so that readers go their own
// way until one says otherwise. One that is no failure is newer than what is stored
// for its request.
func (c *Cache) forgo(t *transfer, tooLarge bool) {
	if t.status >= 500 {
		return
	}
	var m *mark
	if t.judged == nil || tooLarge { // else there was no room at this time
		m = &mark{tooLarge: tooLarge, etag: t.header.Get("Etag"), modified: t.header.Get("Last-Modified")}
	}
	c.store.forgo(t.watch, t.sent, m)
}

// renew updates the stored entry that a 304 confirms (RFC 9111 section 4.3.4). One
// that does not match is served once more, as the origin wants, and not updated.
func (c *Cache) renew(t *transfer, e *entry, sent, received time.Time) {
	t.renewed = e
	if !e.confirmedBy(t.header) {
		t.status, t.header = e.status, e.header
		return
	}
	t.status, t.header = e.status, e.updated(t.header)
	renewed := newEntry(t.sent, t.status, t.header, sent, received)
	if renewed == nil {
		c.forgo(t, false)
		return
	}
	t.entry = renewed.with(e.body)
	t.renewed, t.judged = t.entry, t.entry
	t.shared = !t.tied && t.entry.shareable(received)
	c.keep(t, t.entry)
}
