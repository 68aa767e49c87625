// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package shield

import (
	"io"
	"net/http"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/feedpollard/pollard/policy"
)

// observer passes the answer to a reader's own request on, and looks whether it is
// a feed: then the next reader's can come from a poll.
type observer struct {
	*caddyhttp.ResponseWriterWrapper
	found func() // called if it is one
	begun []byte
	seen  bool // status and header have been sent
	done  bool // the verdict stands
}

func observe(w http.ResponseWriter, found func()) *observer {
	return &observer{ResponseWriterWrapper: &caddyhttp.ResponseWriterWrapper{ResponseWriter: w}, found: found}
}

// WriteHeader implements [http.ResponseWriter].
func (o *observer) WriteHeader(status int) {
	if status >= 200 && !o.seen {
		o.seen = true
		h := o.Header()
		control := policy.ParseCacheControl(h["Cache-Control"])
		o.done = status != http.StatusOK || h.Get("Content-Encoding") != "" && !feedType(h.Get("Content-Type")) || neverFeed(h.Get("Content-Type")) ||
			control.Has("private") || control.Has("no-store")
		if !o.done && h.Get("Content-Encoding") != "" {
			o.settle(isFeed)
		}
	}
	o.ResponseWriterWrapper.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (o *observer) Write(p []byte) (int, error) {
	if !o.seen {
		o.WriteHeader(http.StatusOK)
	}
	o.look(p)
	return o.ResponseWriterWrapper.Write(p)
}

// ReadFrom implements [io.ReaderFrom], so that files are sent as they would be
// without an observer.
func (o *observer) ReadFrom(r io.Reader) (n int64, err error) {
	for !o.done {
		var piece [512]byte
		read, err := r.Read(piece[:])
		if read > 0 {
			written, err := o.Write(piece[:read])
			n += int64(written)
			if err != nil {
				return n, err
			}
		}
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	rest, err := o.ResponseWriterWrapper.ReadFrom(r)
	return n + rest, err
}

func (o *observer) look(p []byte) {
	if o.done {
		return
	}
	o.begun = append(o.begun, p[:min(len(p), enough)]...)
	if v := judge(o.begun, false); v != undecided {
		o.settle(v)
	}
}

func (o *observer) settle(v verdict) {
	o.done, o.begun = true, nil
	if v == isFeed {
		o.found()
	}
}
