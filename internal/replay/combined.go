// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const combinedTime = "02/Jan/2006:15:04:05 -0700"

// combined matches a line of the combined log format of Apache and nginx:
//
//	192.0.2.1 - - [24/Mar/2024:06:26:07 +0000] "GET /feed HTTP/1.1" 200 11051 "-" "Reader/1.0"
//
// Referer and User-Agent may be missing (the common format), and further fields may
// follow. Apache escapes a quotation mark as \", nginx as \x22, and Apache writes 0 bytes
// as "-".
var combined = regexp.MustCompile(`^ *(\S+)(?: +(\S+).*?)? \[([^\]]+)\] *"((?:[^"\\]|\\.)*)" +(\d{3}) +(\d{1,18}|-)(?:\s|$)(?: *"((?:[^"\\]|\\.)*)"(?: +"((?:[^"\\]|\\.)*)")?)?`)

// parseCombined reads a line of the combined log format.
func parseCombined(text []byte) (l Line, err error) {
	m := combined.FindSubmatch(text)
	if m == nil {
		return l, errMalformed
	}
	at, err := time.Parse(combinedTime, string(m[3]))
	if err != nil {
		return l, errMalformed
	}
	l = Line{Time: at.UTC(), Remote: string(m[1]), Referer: dashEmpty(m[7]), UserAgent: dashEmpty(m[8])}
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

// dashEmpty returns a logged header field, or "" if it is "-", which logs write for a
// missing field.
func dashEmpty(field []byte) string {
	if string(field) == "-" {
		return ""
	}
	return string(field)
}
