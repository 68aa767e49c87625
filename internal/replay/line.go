// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"bytes"
	"errors"
	"time"
)

// Line is one request of an access log. Its texts may be parts of the log's buffer, and
// are valid as long as that is.
type Line struct {
	Time      time.Time
	Remote    []byte // the reader's address, or its name if the log has names
	Method    []byte
	Target    []byte // as in the request line: usually a path and a query
	Status    int
	Bytes     int64 // sent, as logged
	UserAgent []byte
	Referer   []byte

	// Known reports whether the log has request headers. If so, the fields below are as
	// sent. The combined format does not have them.
	Known           bool
	AcceptEncoding  []byte
	IfNoneMatch     []byte
	IfModifiedSince []byte
	Accept          []byte
	FetchMode       []byte // Sec-Fetch-Mode, which browsers send
}

var (
	// errMalformed reports that a line is not in the format of an access log.
	errMalformed = errors.New("malformed line")
	// errOther reports a valid line that is not a request: Caddy may write other messages
	// to the same file.
	errOther = errors.New("not a request")
)

// parse reads a line of either format, which has no line end.
func parse(text []byte, l *Line) error {
	*l = Line{}
	text = bytes.TrimSuffix(text, []byte{'\r'})
	var err error
	if len(text) > 0 && text[0] == '{' {
		err = parseCaddy(text, l)
	} else {
		err = parseCombined(text, l)
	}
	if at := l.Time.Unix(); err == nil && (at < 0 || at > latest) {
		err = errMalformed
	}
	return err
}

// latest is the year 2200 in Unix seconds. Unix nanoseconds overflow in 2262.
const latest = 7258118400

// path returns the target without its query, and without scheme and host if the target
// is in absolute form (RFC 9112 section 3.2.2).
func (l *Line) path() []byte {
	path := l.Target
	if len(path) > 0 && path[0] != '/' {
		if i := bytes.Index(path, []byte("://")); i > 0 {
			path = path[i+3:]
			if i = bytes.IndexByte(path, '/'); i < 0 {
				return []byte("/")
			}
			path = path[i:]
		}
	}
	if i := bytes.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	return path
}

// asks reports whether a gateway would answer the request itself.
func (l *Line) asks() bool { return string(l.Method) == "GET" || string(l.Method) == "HEAD" }
