// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"time"
)

// parseCaddy reads a line of Caddy's access log in JSON.
func (p *parser) parseCaddy(text []byte, l *Line) error {
	c := &p.json
	c.reset(text)
	c.open('{')
	var request, status, timed bool
	for first := true; c.more(first, '}'); first = false {
		switch string(c.key()) {
		case "ts":
			l.Time, timed = caddyTime(c)
		case "request":
			request = true
			parseRequest(c, l)
		case "status":
			status = true
			l.Status = int(c.integer())
		case "size":
			l.Bytes = c.integer()
		default:
			c.skip()
		}
	}
	switch {
	case c.broken || c.peek() != 0:
		return errMalformed
	case !request || !status:
		return errOther
	case !timed || len(l.Method) == 0 || l.Status < 0 || l.Status > 999:
		return errMalformed
	}
	l.Known = true
	return nil
}

// parseRequest reads the member "request".
func parseRequest(c *cursor, l *Line) {
	if !c.open('{') {
		return
	}
	for first := true; c.more(first, '}'); first = false {
		switch string(c.key()) {
		case "client_ip": // behind a trusted proxy the reader's own address
			l.Remote = c.text()
		case "remote_ip":
			if ip := c.text(); len(l.Remote) == 0 {
				l.Remote = ip
			}
		case "method":
			l.Method = c.text()
		case "uri":
			l.Target = c.text()
		case "headers":
			parseHeaders(c, l)
		default:
			c.skip()
		}
	}
}

// parseHeaders reads the first value of each field that a replay needs.
func parseHeaders(c *cursor, l *Line) {
	if !c.open('{') {
		return
	}
	for first := true; c.more(first, '}'); first = false {
		field := l.field(c.key())
		if field == nil {
			c.skip()
			continue
		}
		if !c.open('[') {
			continue
		}
		for first := true; c.more(first, ']'); first = false {
			if value := c.text(); first {
				*field = value
			}
		}
	}
}

// field is where a header field belongs; nil: nowhere. Caddy writes the names in
// their canonical form.
func (l *Line) field(name []byte) *[]byte {
	switch string(name) {
	case "User-Agent":
		return &l.UserAgent
	case "Referer":
		return &l.Referer
	case "Accept-Encoding":
		return &l.AcceptEncoding
	case "If-None-Match":
		return &l.IfNoneMatch
	case "If-Modified-Since":
		return &l.IfModifiedSince
	case "Accept":
		return &l.Accept
	case "Sec-Fetch-Mode":
		return &l.FetchMode
	}
	return nil
}

// caddyTimes are the forms of time that Caddy's encoder can be told to write as text.
var caddyTimes = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006/01/02 15:04:05.000", "2006/01/02 15:04:05",
	time.RFC1123, combinedTime,
}

// caddyTime reads a line's time: seconds since 1970 with a fraction, or one of
// the forms that Caddy can be told to use instead, among them milliseconds and
// nanoseconds, which their size tells apart.
func caddyTime(c *cursor) (time.Time, bool) {
	if c.peek() == '"' {
		text := string(c.text())
		for _, layout := range caddyTimes {
			if t, err := time.Parse(layout, text); err == nil {
				return t.UTC(), true
			}
		}
		return time.Time{}, false
	}
	n := c.number()
	switch {
	case c.broken || !(n >= 0):
		return time.Time{}, false
	case n >= 1e17:
		n /= 1e9
	case n >= 1e11:
		n /= 1e3
	}
	if n > 1e11 {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(n)
	// A float holds microseconds of our time, not nanoseconds.
	return time.Unix(int64(whole), int64(math.Round(fraction*1e6))*1000).UTC(), true
}
