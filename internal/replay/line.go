// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"errors"
	"strings"
	"time"
)

// Line is one request of an access log.
type Line struct {
	Time      time.Time
	Remote    string // the reader's address, or its name if the log has names
	Method    string
	Target    string // as in the request line: usually a path and a query
	Status    int
	Bytes     int64 // sent, as logged
	UserAgent string
	Referer   string

	// Known reports whether the log has request headers. If so, the fields below are as
	// sent. The combined format does not have them.
	Known           bool
	AcceptEncoding  string
	IfNoneMatch     string
	IfModifiedSince string
	Accept          string
	FetchMode       string // Sec-Fetch-Mode, which browsers send
}

var (
	// errMalformed reports that a line is not in the format of an access log.
	errMalformed = errors.New("malformed line")
	// errOther reports a valid line that is not a request: Caddy may write other messages
	// to the same file.
	errOther = errors.New("not a request")
)

// parse reads a line of either format, which has no line end.
func parse(text []byte) (l Line, err error) {
	if len(text) > 0 && text[0] == '{' {
		l, err = parseCaddy(text)
	} else {
		l, err = parseCombined(text)
	}
	if at := l.Time.Unix(); err == nil && (at < 0 || at > latest) {
		err = errMalformed
	}
	return l, err
}

// latest is the year 2200 in Unix seconds. Unix nanoseconds overflow in 2262.
const latest = 7258118400

// path returns the target without its query, and without scheme and host if the target
// is in absolute form (RFC 9112 section 3.2.2).
func (l *Line) path() string {
	path := l.Target
	if !strings.HasPrefix(path, "/") {
		if _, rest, ok := strings.Cut(path, "://"); ok {
			slash := strings.IndexByte(rest, '/')
			if slash < 0 {
				return "/"
			}
			path = rest[slash:]
		}
	}
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path = path[:i]
	}
	return path
}

// asks reports whether a gateway would answer the request itself.
func (l *Line) asks() bool { return l.Method == "GET" || l.Method == "HEAD" }

// noBody reports whether the logged answer had no body.
func (l *Line) noBody() bool { return l.Status == 304 || l.Method == "HEAD" }
