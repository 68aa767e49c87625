// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// maxDelta is the largest delta-seconds: greater numbers count as 2^31 (RFC 9111 section
// 1.2.2).
const maxDelta = (1 << 31) * time.Second

// CacheControl holds the directives of a message's Cache-Control fields, in order.
type CacheControl []Directive

// Directive is one directive of a Cache-Control field.
type Directive struct {
	Name     string // lower case
	Argument string // without quotes; empty if none was given
}

// ParseCacheControl reads the lines of a Cache-Control field (RFC 9111 section 5.2).
// Invalid directives are left out; the rest of the field still counts. A quoted string
// without end ends with its line.
func ParseCacheControl(lines []string) CacheControl {
	var directives CacheControl
	for _, line := range lines {
		for line != "" {
			var part string
			part, line = cutDirective(line)
			name, argument, _ := strings.Cut(strings.Trim(part, " \t"), "=")
			if !httpguts.ValidHeaderFieldName(name) { // RFC 9110 section 5.6.2: a token
				continue
			}
			directives = append(directives, Directive{strings.ToLower(name), unquote(argument)})
		}
	}
	return directives
}

// cutDirective splits a line at its first comma outside quotes. Only a quote right
// after an equals sign opens a quoted string, as in the grammar.
func cutDirective(line string) (first, rest string) {
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quoted && c == '\\':
			i++
		case quoted && c == '"':
			quoted = false
		case !quoted && c == '"' && i > 0 && line[i-1] == '=':
			quoted = true
		case !quoted && c == ',':
			return line[:i], line[i+1:]
		}
	}
	return line, ""
}

// unquote takes the value out of a quoted-string (RFC 9110 section 5.6.4); any
// other text is returned as it is.
func unquote(text string) string {
	if len(text) < 2 || text[0] != '"' || text[len(text)-1] != '"' {
		return text
	}
	text = text[1 : len(text)-1]
	if !strings.Contains(text, "\\") {
		return text
	}
	var plain strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) {
			i++
		}
		plain.WriteByte(text[i])
	}
	return plain.String()
}

// Has reports whether the directive is there, with or without an argument.
func (c CacheControl) Has(name string) bool {
	return slices.ContainsFunc(c, func(d Directive) bool { return d.Name == name })
}

// Seconds returns the argument of a directive such as max-age, at most 2^31 s. If it is
// absent, ok is false. The smallest of several counts, and an invalid number is 0, which
// means stale (RFC 9111 section 4.2.1 encourages both).
func (c CacheControl) Seconds(name string) (length time.Duration, ok bool) {
	for _, d := range c {
		if d.Name != name {
			continue
		}
		delta, valid := deltaSeconds(d.Argument)
		if !valid {
			return 0, true
		}
		if !ok || delta < length {
			length = delta
		}
		ok = true
	}
	return length, ok
}

// deltaSeconds reads a number of seconds, which consists of digits, at most 2^31 (RFC 9111
// section 1.2.2).
func deltaSeconds(text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	var n time.Duration
	for i := 0; i < len(text); i++ {
		if text[i] < '0' || text[i] > '9' {
			return 0, false
		}
		n = min(n*10+time.Duration(text[i]-'0'), maxDelta/time.Second)
	}
	return n * time.Second, true
}
