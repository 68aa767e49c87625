// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/internal/readers"
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

func (o *origin) RoundTrip(r *http.Request) (*http.Response, error) {
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.polls++
	if o.skipHours.Contains(now) {
		o.inSkipHours++
	}
	e, err := o.feed.at(now)
	if err != nil {
		return nil, err
	}
	status, body, h := http.StatusOK, e.packed, e.header.Clone()
	h.Set("Date", now.UTC().Format(http.TimeFormat))
	if e.named(r.Header) {
		// RFC 9110 section 15.4.5: a 304 should not have the fields that describe the body.
		h.Del("Content-Type")
		h.Del("Content-Encoding")
		status, body = http.StatusNotModified, nil
		o.notModified++
	} else {
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	o.bytes += httpfield.Size(status, h) + int64(len(body))
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: h, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// named reports whether the validators of a request match the revision (RFC 9110 section 13.2.2).
func (e *revision) named(h http.Header) bool {
	if tag := h.Get("If-None-Match"); tag != "" {
		return strings.TrimPrefix(tag, "W/") == strings.TrimPrefix(e.header.Get("Etag"), "W/")
	}
	since, err := http.ParseTime(h.Get("If-Modified-Since"))
	return err == nil && !e.modified.IsZero() && !e.modified.After(since)
}

func (o *origin) started() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.polls
}
