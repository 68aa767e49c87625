// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
)

// origin is the model of a publisher's server. It supports conditional requests and
// compression, and answers at once.
type origin struct {
	now       func() time.Time
	skipHours readers.Hours

	mu          sync.Mutex // guards the fields below
	feed        *feed
	polls       int64
	bytes       int64 // status line, header fields and body, as HTTP/1.1 sends them
	notModified int64
	inSkipHours int64
}

// Acquire implements [cache.Origin]. The origin may be polled at any time.
func (o *origin) Acquire(context.Context, feedurl.URL) (policy.Slot, error) { return o, nil }

// Release implements [policy.Slot].
func (o *origin) Release() {}

// Host implements [cache.Origin]. The model has no spacing and no cool-downs.
func (o *origin) Host(feedurl.URL) policy.Host { return policy.Host{} }

// Busy implements [cache.Origin].
func (o *origin) Busy() []string { return nil }

// Poll implements [policy.Slot].
func (o *origin) Poll(_ context.Context, ask policy.Ask) policy.Answer {
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.polls++
	if o.skipHours.Contains(now) {
		o.inSkipHours++
	}
	a := policy.Answer{Asked: now, URL: ask.URL.String()}
	e, err := o.feed.at(now)
	if err != nil {
		a.Status, a.Failure, a.Err = http.StatusInternalServerError, policy.FailureStatus, err
		return a
	}
	a.Header = e.header.Clone()
	a.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	if ask.Validators.URL == ask.URL.String() && e.named(ask.Validators) {
		// RFC 9110 section 15.4.5: a 304 should not have the fields that describe the body.
		for _, name := range []string{"Content-Type", "Content-Encoding"} {
			a.Header.Del(name)
		}
		a.Status = http.StatusNotModified
		o.notModified++
	} else {
		a.Header.Set("Content-Length", strconv.Itoa(len(e.packed)))
		a.Status, a.Wire = http.StatusOK, int64(len(e.packed))
	}
	o.bytes += wireSize(a.Status, a.Header) + a.Wire
	if a.Status == http.StatusOK {
		// The gateway's client decodes the body.
		a.Header.Del("Content-Encoding")
		a.Header.Del("Content-Length")
		a.Body = e.body
	}
	return a
}

// named reports whether validators match the edition (RFC 9110 section 13.2.2).
func (e *revision) named(v policy.Validators) bool {
	if v.ETag != "" {
		tag := e.header.Get("Etag")
		return tag != "" && strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(v.ETag, "W/")
	}
	if v.LastModified == "" || e.modified.IsZero() {
		return false
	}
	since, err := http.ParseTime(v.LastModified)
	return err == nil && !e.modified.After(since)
}

// wireSize returns the size in bytes of the status line and the header fields of an
// answer in HTTP/1.1 (RFC 9112 section 2.1). HTTP/2 needs fewer.
func wireSize(status int, h http.Header) int64 {
	n := len("HTTP/1.1 200 \r\n\r\n") + len(http.StatusText(status))
	for name, values := range h {
		for _, value := range values {
			n += len(name) + len(value) + len(": \r\n")
		}
	}
	return int64(n)
}

// started returns the number of polls that have started.
func (o *origin) started() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.polls
}
