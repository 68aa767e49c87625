// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// statusClientClosed is what servers log where a reader has left without an answer.
const statusClientClosed = 499

// exchange is one request of a reader, on its way through the cache.
type exchange struct {
	cache  *Cache
	w      http.ResponseWriter
	r      *http.Request
	target Target
}

// Serve answers a reader's request: from the store, from the origin by way of the
// store, or by the origin's own handler.
//
// An error means that nothing was written. It is the origin's, unchanged. Where a
// reader leaves before there is an answer the status is 499, and no error. An
// origin that breaks off in the middle of a body makes Serve panic with
// [http.ErrAbortHandler], as net/http demands.
func (c *Cache) Serve(w http.ResponseWriter, r *http.Request, t Target) error {
	x := &exchange{cache: c, w: w, r: r, target: t}
	switch {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return x.own(fwdMethod)
	case c.life.Err() != nil, r.Header["Upgrade"] != nil, r.ContentLength != 0:
		return x.own(fwdBypass) // the key says nothing of what a body asks for
	}
	now := time.Now()
	stored := c.store.get(t.Key)
	e, part := stored.find(r), (*entry)(nil)
	if e == nil {
		part = stored.findPart(r)
	}
	if known := cmp.Or(e, part); known != nil && !known.rules.explicit && hasCredentials(r) {
		return x.own(fwdRequest) // nobody has said that it is good for this reader, too
	}
	switch {
	case e != nil && e.reusable(now):
		return x.reply(e, cacheStatus{entry: e})
	case part != nil && part.reusable(now) && part.covers(r):
		return x.replyPart(part, now)
	case e != nil && e.reusableWhileRevalidating(now):
		x.refresh(stored, e)
		return x.reply(e, cacheStatus{entry: e, detail: "stale-while-revalidate"})
	case policy.ParseCacheControl(r.Header.Values("Cache-Control")).Has("only-if-cached"):
		// RFC 9111 section 5.2.1.7.
		http.Error(w, "not in the cache, and only-if-cached was asked for", http.StatusGatewayTimeout)
		return nil
	case !x.shareable(stored, e):
		return x.own(missKind(stored, e, part))
	}
	return x.fetch(stored, e, part)
}

// shareable reports whether a shared fetch could answer the request, for all that
// is known.
func (x *exchange) shareable(stored *resource, e *entry) bool {
	h := x.r.Header
	switch {
	case h["If-Match"] != nil, h["If-Unmodified-Since"] != nil:
		return false // the origin's to evaluate (RFC 9110 section 13.2.2)
	case h["Authorization"] != nil && h["Cookie"] != nil:
		return false // who that is only its own request tells
	case e == nil && x.r.Method == http.MethodHead:
		return false
	}
	return stored.markFor(x.r) == nil || e != nil && h["Authorization"] == nil
}

// hasCredentials reports whether a request tells its reader from others.
func hasCredentials(r *http.Request) bool {
	return r.Header["Cookie"] != nil || r.Header["Authorization"] != nil
}

// fetch asks the origin by a request of the cache's own: for all who want the same
// at this time, or for one reader alone where the answer may be no good for others.
func (x *exchange) fetch(stored *resource, e, part *entry) error {
	ranged := e == nil && x.wantsRange()
	f := x.forwardOf(e, part, ranged)
	if len(stored.variants()) > 0 {
		if s := stored.entries[0].selection; s.of(f.Request) != s.of(x.r) {
			return x.own(fwdVary) // it depends on what shared fetches do not tell
		}
	}
	status := cacheStatus{fwd: missKind(stored, e, f.completing)}
	if ranged || x.r.Header["Authorization"] != nil || e != nil && stored.alone {
		return x.finish(x.cache.start(x, f, e, true), e, status)
	}
	t, first := x.cache.join(collapseKey(x.target.Key, stored, f.Request), func() *transfer {
		return x.cache.start(x, f, e, false)
	})
	if first {
		return x.finish(t, e, status)
	}
	return x.follow(t, e, status)
}

// refresh brings a stale entry up to date in the background, once at a time.
func (x *exchange) refresh(stored *resource, e *entry) {
	if x.r.Header["Authorization"] != nil {
		return // the next reader will
	}
	f := x.forwardOf(e, nil, false)
	x.cache.join(collapseKey(x.target.Key, stored, f.Request), func() *transfer {
		t := x.cache.start(x, f, e, false)
		x.cache.leave(t)
		return t
	})
}

// finish answers the reader who caused a transfer.
func (x *exchange) finish(t *transfer, stale *entry, status cacheStatus) error {
	defer x.cache.leave(t)
	if !x.await(t) {
		return x.gone()
	}
	status.fwdStatus = t.status
	if t.failed() && stale != nil && stale.reusableOnError(time.Now()) {
		return x.replyStale(stale, status)
	}
	status.entry, status.stored = t.judged, t.entry != nil
	switch {
	case !x.mayHave(t):
		x.cache.leave(t)
		return x.own(status.fwd)
	case t.err != nil:
		return unwrap(t.err)
	case t.renewed != nil:
		status.fwdStatus, status.entry = http.StatusNotModified, t.renewed
		return x.reply(t.renewed, status)
	}
	return x.relay(t, status)
}

// mayHave reports whether the outcome of a shared fetch is good for the reader who
// caused it. An answer that is not for others is, save for a reader with a cookie:
// his may be another. So may that of a reader whom nobody in particular is refused.
func (x *exchange) mayHave(t *transfer) bool {
	anonymous := x.r.Header["Cookie"] == nil
	switch {
	case t.renewed != nil:
		return true
	case t.judged != nil:
		return t.judged.selection.matches(x.r) && (anonymous || t.judged.rules.explicit)
	}
	return t.failed() || anonymous && !t.refused()
}

// replyStale answers with a stale entry in place of an origin that failed.
func (x *exchange) replyStale(e *entry, status cacheStatus) error {
	status.entry, status.detail = e, "stale-if-error"
	return x.reply(e, status)
}

// await waits until the origin has answered, and passes 1xx answers on. It is
// false where the reader has left.
func (x *exchange) await(t *transfer) bool {
	for {
		select {
		case i := <-t.interim:
			x.writeInterim(i)
		case <-t.settled:
			for range len(t.interim) {
				x.writeInterim(<-t.interim)
			}
			return true
		case <-x.r.Context().Done():
			return false
		}
	}
}

// gone ends the exchange of a reader who has left.
func (x *exchange) gone() error {
	x.w.WriteHeader(statusClientClosed)
	return nil
}

// follow waits for the answer to another reader's request, and takes it if it may
// be reused for this one, too.
func (x *exchange) follow(t *transfer, stale *entry, status cacheStatus) error {
	patience := time.NewTimer(collapseWait)
	defer patience.Stop()
	select {
	case <-t.settled:
	case <-patience.C:
		return x.own(status.fwd)
	case <-x.r.Context().Done():
		return x.gone()
	}
	status.fwdStatus, status.collapsed = t.status, true
	switch {
	case t.failed() && stale != nil && stale.reusableOnError(time.Now()):
		return x.replyStale(stale, status)
	case t.err == nil && !t.shared, !x.mayHave(t):
		return x.own(status.fwd)
	case t.err != nil:
		return unwrap(t.err)
	}
	status.entry = t.entry
	if t.renewed != nil {
		return x.reply(t.entry, status)
	}
	// A body of unknown length can grow out of what is kept of it.
	if t.length < 0 || x.wantsRange() {
		switch state := x.awaitBody(t.body, patience.C); {
		case x.r.Context().Err() != nil:
			return x.gone()
		case state != complete:
			return x.own(status.fwd)
		}
	}
	return x.replyFrom(t.entry, t.body, t.length, status)
}

// awaitBody waits until a body is all there, or will not be.
func (x *exchange) awaitBody(body *capture, patience <-chan time.Time) captureState {
	for {
		_, state, changed := body.from(0)
		if state != growing {
			return state
		}
		select {
		case <-changed:
		case <-patience:
			return growing
		case <-x.r.Context().Done():
			return growing
		}
	}
}

// outcome is the status of the answer, or that which an error stands for; 0: none.
func (t *transfer) outcome() int {
	if t.err == nil {
		return t.status
	}
	if known, ok := errors.AsType[*OriginError](t.err); ok {
		return known.Status
	}
	return 0
}

// failed reports whether the origin gave no answer, or one that counts as none.
func (t *transfer) failed() bool { return t.outcome() == 0 || isFailure(t.outcome()) }

// refused reports whether the origin answered that it wants to know who asks. What
// has a validator is a page like any other.
func (t *transfer) refused() bool {
	status := t.outcome()
	return (status == http.StatusUnauthorized || status == http.StatusForbidden) && t.header.Get("Etag") == "" && t.header.Get("Last-Modified") == ""
}

// missKind is why a request went forward (RFC 9211 section 2.2).
func missKind(stored *resource, e, part *entry) string {
	switch {
	case e != nil:
		return fwdStale
	case part != nil:
		return fwdPartial
	case len(stored.variants()) > 0:
		return fwdVary
	}
	return fwdURIMiss
}

// OriginError is an error of an origin that stands for an answer: somebody further
// up will make one with this status of it. Only one of 500, 502, 503 and 504
// counts as a failure then, like any other error. Serve returns Err itself.
type OriginError struct {
	Status int
	Err    error
}

func (e *OriginError) Error() string { return e.Err.Error() }

func (e *OriginError) Unwrap() error { return e.Err }

// unwrap gives back the origin's own error.
func unwrap(err error) error {
	if known, ok := err.(*OriginError); ok {
		return known.Err
	}
	return err
}
