// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Line is one request of an access log.
type Line struct {
	Time   time.Time
	Remote string // the reader's address, or its name if the log has names
	Method string
	Target string // as in the request line: usually a path and a query
	Status int
	Bytes  int64 // sent, as logged

	// Header has the User-Agent, the Referer and, if HasHeader, the other fields of [fields]. The
	// combined format does not have those.
	Header    http.Header
	HasHeader bool
}

// fields are the header fields that decide on the answer to a request.
var fields = []string{"Accept", "Accept-Encoding", "If-Modified-Since", "If-None-Match", "Referer", "Sec-Fetch-Mode", "User-Agent"}

var (
	// errMalformed reports that a line is not in the format of an access log.
	errMalformed = errors.New("malformed line")
	// errOther reports a valid line that is not a request: Caddy may write other messages
	// to the same file.
	errOther = errors.New("not a request")
)

// clocksDiffer is by how much the clock of a server may be ahead of this machine's.
const clocksDiffer = 24 * time.Hour

// parse reads a line of either format, which has no line end. The date of a line that is later than now
// is wrong.
func parse(text []byte) (l Line, err error) {
	if len(text) > 0 && text[0] == '{' {
		l, err = parseCaddy(text)
	} else {
		l, err = parseCombined(text)
	}
	if err == nil && (l.Time.Unix() < 0 || time.Until(l.Time) > clocksDiffer) {
		err = errMalformed
	}
	return l, err
}

const combinedTime = "02/Jan/2006:15:04:05 -0700"

// combined matches a line of the combined log format of Apache and nginx:
//
//	192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed HTTP/1.1" 200 11051 "-" "Reader/1.0"
//
// Referer and User-Agent may be missing (the common format), and further fields may
// follow. Apache escapes a quotation mark as \", nginx as \x22, and Apache writes 0 bytes
// as "-".
var combined = regexp.MustCompile(`^ *(\S+)(?: +(\S+).*?)? \[([^\]]+)\] *"((?:[^"\\]|\\.)*)" +(\d{3}) +(\d{1,18}|-)(?:\s|$)(?: *"((?:[^"\\]|\\.)*)"(?: +"((?:[^"\\]|\\.)*)")?)?`)

func parseCombined(text []byte) (l Line, err error) {
	m := combined.FindSubmatch(text)
	if m == nil {
		return l, errMalformed
	}
	at, err := time.Parse(combinedTime, string(m[3]))
	if err != nil {
		return l, errMalformed
	}
	l = Line{Time: at.UTC(), Remote: string(m[1]), Header: make(http.Header)}
	for i, name := range []string{"Referer", "User-Agent"} {
		if value := string(m[7+i]); value != "" && value != "-" {
			l.Header[name] = []string{value}
		}
	}
	// With a virtual host and its port in front (vhost_combined), the client is the second
	// word. An IPv6 address has more than one colon.
	if strings.Count(l.Remote, ":") == 1 && l.Remote[0] != ':' && len(m[2]) > 1 {
		l.Remote = string(m[2])
	}
	// A client that does not speak HTTP leaves a request line without a target.
	method, rest, _ := strings.Cut(string(m[4]), " ")
	l.Method = method
	l.Target, _, _ = strings.Cut(rest, " ")
	l.Status, _ = strconv.Atoi(string(m[5]))
	l.Bytes, _ = strconv.ParseInt(string(m[6]), 10, 64) // "-" is 0
	return l, nil
}

func parseCaddy(text []byte) (l Line, err error) {
	var e struct {
		Time    any   `json:"ts"`
		Status  *int  `json:"status"`
		Size    int64 `json:"size"`
		Request *struct {
			ClientIP string         `json:"client_ip"` // the reader's address, also behind a trusted proxy
			RemoteIP string         `json:"remote_ip"`
			Method   string         `json:"method"`
			URI      string         `json:"uri"`
			Headers  map[string]any `json:"headers"`
		} `json:"request"`
	}
	if json.Unmarshal(text, &e) != nil {
		return l, errMalformed
	}
	if e.Request == nil || e.Status == nil {
		return l, errOther
	}
	at := caddyTime(e.Time)
	if at.IsZero() || e.Request.Method == "" || *e.Status < 0 || *e.Status > 999 || e.Size < 0 {
		return l, errMalformed
	}
	header := make(http.Header)
	for _, name := range fields {
		if values, _ := e.Request.Headers[name].([]any); len(values) > 0 { // the first line of a field is enough
			if value, _ := values[0].(string); value != "" {
				header[name] = []string{printable(value)}
			}
		}
	}
	return Line{
		Time: at, Status: *e.Status, Bytes: e.Size, Header: header, HasHeader: true,
		Remote: printable(cmp.Or(e.Request.ClientIP, e.Request.RemoteIP)), Method: printable(e.Request.Method), Target: printable(e.Request.URI),
	}, nil
}

// printable returns a text with spaces in place of control characters.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, text)
}

// caddyTimes are the text formats of times that Caddy's log encoder can be configured to
// write.
var caddyTimes = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006/01/02 15:04:05.000", "2006/01/02 15:04:05",
	time.RFC1123, combinedTime,
}

// caddyTime reads a line's time: seconds since 1970 with a fraction, or another format
// that Caddy can be configured to write. Seconds, milliseconds and nanoseconds are
// distinguished by their size. It returns the zero time for any other value.
func caddyTime(value any) time.Time {
	switch value := value.(type) {
	case string:
		for _, layout := range caddyTimes {
			if t, err := time.Parse(layout, value); err == nil {
				return t.UTC()
			}
		}
	case float64:
		switch {
		case value >= 1e17:
			value /= 1e9
		case value >= 1e11:
			value /= 1e3
		}
		if value >= 0 && value <= 1e11 {
			whole, fraction := math.Modf(value)
			// A float64 holds current times to the microsecond, not to the nanosecond.
			return time.Unix(int64(whole), int64(math.Round(fraction*1e6))*1000).UTC()
		}
	}
	return time.Time{}
}

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

func (l *Line) noBody() bool { return l.Status == 304 || l.Method == "HEAD" }
