// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// exchange is one request of a reader, on its way through the cache.
type exchange struct {
	cache  *Cache
	w      http.ResponseWriter
	r      *http.Request
	key    string
	origin http.RoundTripper
}

// ServeHTTP answers a request from the store, or through it from the origin.
//
// The key is the target URI: absolute, without a fragment, and of the server's own
// choice of scheme and host, so that no Host field of a reader can make two of one.
//
// The origin gets requests whose RequestURI is empty and whose URL and Host are the
// reader's; it must not follow redirects nor decode bodies, and its responses must
// have the ContentLength that their header says. It is asked from other goroutines
// too, at once and also after ServeHTTP has returned, with a context that carries
// the values of the request's and ends by itself. It reports 1xx answers through
// [net/http/httptrace]. See also [OriginError].
//
// An error means that nothing was written. It is the origin's, unchanged, or the
// context's of a reader who left. An origin that breaks off in the middle of a body
// makes ServeHTTP panic with [http.ErrAbortHandler], as net/http demands.
func (c *Cache) ServeHTTP(w http.ResponseWriter, r *http.Request, key string, origin http.RoundTripper) error {
	x := &exchange{cache: c, w: w, r: r, key: key, origin: origin}
	switch {
	case c.life.Err() != nil:
		return x.pass(fwdBypass)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return x.pass(fwdMethod)
	case r.ContentLength != 0:
		return x.pass(fwdBypass) // the key says nothing of what the body asks for
	}
	now := c.now()
	stored := c.store.get(key)
	e := stored.find(r)
	switch {
	case e != nil && e.reusable(now):
		return x.reply(e, cacheStatus{entry: e})
	case e != nil && e.reusableWhileRevalidating(now):
		x.refresh(stored, e)
		return x.reply(e, cacheStatus{entry: e, detail: "stale-while-revalidate"})
	case policy.ParseCacheControl(r.Header.Values("Cache-Control")).Has("only-if-cached"):
		// RFC 9111 section 5.2.1.7.
		http.Error(w, "not in the cache, and only-if-cached was asked for", http.StatusGatewayTimeout)
		return nil
	case r.Method == http.MethodHead:
		return x.fetchAlone(stored, e)
	case stored.isAlone(now), slices.ContainsFunc(unshared, func(name string) bool { return r.Header.Get(name) != "" }):
		return x.fetchAlone(stored, e)
	}
	return x.fetchShared(stored, e)
}

// unshared are request fields whose answers are not for others, as a rule: nobody
// should wait for them.
var unshared = []string{"Authorization", "If-Match", "If-Unmodified-Since"}

// pass sends a request through that no stored response can answer.
func (x *exchange) pass(why string) error {
	f := forwardOf(x.r.Context(), x.r, nil, true)
	t := x.cache.start(x, x.r, f, nil, true, true)
	return x.finish(t, nil, cacheStatus{fwd: why})
}

// fetchAlone asks the origin for one reader only. The reader's own conditions and
// range go along, unless there is something stored to validate: where nothing can
// be stored, the origin is the one to evaluate them.
func (x *exchange) fetchAlone(stored *resource, e *entry) error {
	validated := e
	if x.r.Method == http.MethodHead {
		validated = nil
	}
	f := forwardOf(x.r.Context(), x.r, validated, true)
	t := x.cache.start(x, x.r, f, e, true, true)
	return x.finish(t, e, cacheStatus{fwd: missKind(stored, e)})
}

// fetchShared asks the origin for all who want the same at this time.
func (x *exchange) fetchShared(stored *resource, e *entry) error {
	status := cacheStatus{fwd: missKind(stored, e)}
	t, first := x.cache.flights.join(flightKey(x.key, stored, x.r), func() *transfer {
		f := forwardOf(context.WithoutCancel(x.r.Context()), x.r, e, false)
		return x.cache.start(x, x.r, f, e, false, true)
	})
	if first {
		return x.finish(t, e, status)
	}
	if answered, err := x.follow(t, e, status); answered {
		return err
	}
	return x.fetchAlone(stored, e)
}

// refresh brings a stale entry up to date in the background, once at a time.
func (x *exchange) refresh(stored *resource, e *entry) {
	x.cache.flights.join(flightKey(x.key, stored, x.r), func() *transfer {
		reader := x.r.Clone(context.WithoutCancel(x.r.Context()))
		reader.Method = http.MethodGet
		f := forwardOf(reader.Context(), reader, e, false)
		return x.cache.start(x, reader, f, e, false, false)
	})
}

// finish answers the reader who caused a transfer.
func (x *exchange) finish(t *transfer, stale *entry, status cacheStatus) error {
	defer x.cache.leave(t)
	if err := x.await(t); err != nil {
		return err
	}
	status.fwdStatus = t.status
	now := x.cache.now()
	if t.failed() && stale != nil && x.cache.reusableOnError(stale, now) {
		status.entry, status.detail = stale, "stale-if-error"
		return x.reply(stale, status)
	}
	if t.err != nil {
		return unwrap(t.err)
	}
	status.entry, status.stored = t.entry, t.entry != nil
	if t.renewed != nil {
		status.fwdStatus, status.entry = http.StatusNotModified, t.renewed
		return x.replyRenewed(t, status)
	}
	return x.relay(t, status)
}

// await waits until the origin has answered, and passes 1xx answers on.
func (x *exchange) await(t *transfer) error {
	for {
		select {
		case i := <-t.interim:
			x.writeInterim(i)
		case <-t.settled:
			for range len(t.interim) {
				x.writeInterim(<-t.interim)
			}
			return nil
		case <-x.r.Context().Done():
			return context.Cause(x.r.Context())
		}
	}
}

// follow waits for the answer to another reader's request, and takes it if it may
// be reused for this one, too.
func (x *exchange) follow(t *transfer, stale *entry, status cacheStatus) (answered bool, err error) {
	patience := time.NewTimer(collapseWait)
	defer patience.Stop()
	select {
	case <-t.settled:
	case <-patience.C:
		return false, nil
	case <-x.r.Context().Done():
		return true, context.Cause(x.r.Context())
	}
	status.fwdStatus, status.collapsed = t.status, true
	if t.failed() && stale != nil && x.cache.reusableOnError(stale, x.cache.now()) {
		status.entry, status.detail = stale, "stale-if-error"
		return true, x.reply(stale, status)
	}
	if t.err != nil {
		return true, unwrap(t.err)
	}
	if !t.shared || !t.entry.selection.matches(x.r) {
		return false, nil
	}
	status.entry = t.entry
	if t.renewed != nil {
		return true, x.reply(t.entry, status)
	}
	// A body of unknown length can grow out of what is kept of it.
	for t.length < 0 {
		_, state, changed := t.body.from(0)
		if state == complete {
			break
		}
		if state != growing {
			return false, nil
		}
		select {
		case <-changed:
		case <-patience.C:
			return false, nil
		case <-x.r.Context().Done():
			return true, context.Cause(x.r.Context())
		}
	}
	return true, x.replyFrom(t.entry, t.body, t.length, status)
}

// failed reports whether the origin gave no answer, or one that counts as none.
func (t *transfer) failed() bool {
	if t.err == nil {
		return isFailure(t.status)
	}
	var known *OriginError
	return !errors.As(t.err, &known) || isFailure(known.Status)
}

// missKind is why a request went forward (RFC 9211 section 2.2).
func missKind(stored *resource, e *entry) string {
	switch {
	case e != nil:
		return fwdStale
	case stored != nil && len(stored.entries) > 0:
		return fwdVary
	}
	return fwdURIMiss
}

// OriginError is an error of an origin that stands for an answer: somebody further
// up will make one with this status of it. Only one of 500, 502, 503 and 504
// counts as a failure then, like any other error. ServeHTTP returns Err itself.
type OriginError struct {
	Status int
	Err    error
}

// Error is the text of the error within.
func (e *OriginError) Error() string { return e.Err.Error() }

// Unwrap is the error within.
func (e *OriginError) Unwrap() error { return e.Err }

// unwrap gives back the origin's own error.
func unwrap(err error) error {
	if known, ok := err.(*OriginError); ok {
		return known.Err
	}
	return err
}
