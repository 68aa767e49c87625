// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"cmp"
	"encoding/json"
	"math"
	"strings"
	"time"
)

// caddyEntry is a line of Caddy's access log in JSON.
type caddyEntry struct {
	Time    json.RawMessage `json:"ts"`
	Status  *int            `json:"status"`
	Size    int64           `json:"size"`
	Request *struct {
		ClientIP string         `json:"client_ip"` // the reader's address, also behind a trusted proxy
		RemoteIP string         `json:"remote_ip"`
		Method   string         `json:"method"`
		URI      string         `json:"uri"`
		Headers  map[string]any `json:"headers"`
	} `json:"request"`
}

// parseCaddy reads a line of Caddy's access log in JSON.
func parseCaddy(text []byte) (l Line, err error) {
	var e caddyEntry
	if json.Unmarshal(text, &e) != nil {
		return l, errMalformed
	}
	if e.Request == nil || e.Status == nil {
		return l, errOther
	}
	at, ok := caddyTime(e.Time)
	if !ok || e.Request.Method == "" || *e.Status < 0 || *e.Status > 999 || e.Size < 0 {
		return l, errMalformed
	}
	header := func(name string) string { // the first value of a field
		values, _ := e.Request.Headers[name].([]any)
		if len(values) == 0 {
			return ""
		}
		value, _ := values[0].(string)
		return printable(value)
	}
	return Line{
		Time: at, Status: *e.Status, Bytes: e.Size, Known: true,
		Remote: printable(cmp.Or(e.Request.ClientIP, e.Request.RemoteIP)), Method: printable(e.Request.Method), Target: printable(e.Request.URI),
		UserAgent: header("User-Agent"), Referer: header("Referer"), AcceptEncoding: header("Accept-Encoding"),
		IfNoneMatch: header("If-None-Match"), IfModifiedSince: header("If-Modified-Since"),
		Accept: header("Accept"), FetchMode: header("Sec-Fetch-Mode"),
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
// distinguished by their size.
func caddyTime(value json.RawMessage) (time.Time, bool) {
	var text string
	if json.Unmarshal(value, &text) == nil && text != "" {
		for _, layout := range caddyTimes {
			if t, err := time.Parse(layout, text); err == nil {
				return t.UTC(), true
			}
		}
		return time.Time{}, false
	}
	n := math.NaN()
	if json.Unmarshal(value, &n) != nil || !(n >= 0) {
		return time.Time{}, false
	}
	switch {
	case n >= 1e17:
		n /= 1e9
	case n >= 1e11:
		n /= 1e3
	}
	if n > 1e11 {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(n)
	// A float64 holds current times to the microsecond, not to the nanosecond.
	return time.Unix(int64(whole), int64(math.Round(fraction*1e6))*1000).UTC(), true
}
