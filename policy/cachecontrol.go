// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/feedpollard/pollard/internal/httpfield"
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
		for _, member := range httpfield.SplitList(line) {
			name, argument, _ := strings.Cut(member, "=")
			if httpguts.ValidHeaderFieldName(name) { // RFC 9110 section 5.6.2: a token
				directives = append(directives, Directive{strings.ToLower(name), strings.Trim(argument, `"`)})
			}
		}
	}
	return directives
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

// deltaSeconds reads a number of seconds, at most 2^31 (RFC 9111 section 1.2.2).
func deltaSeconds(text string) (time.Duration, bool) {
	n, ok := ParseNumber(text)
	return time.Duration(min(n, int64(maxDelta/time.Second))) * time.Second, ok
}

// ParseNumber reads a whole number, which consists of ASCII digits. Above [math.MaxInt64] it is that.
func ParseNumber(text string) (n int64, ok bool) {
	u, err := strconv.ParseUint(text, 10, 64) // without a sign
	return int64(min(u, math.MaxInt64)), err == nil || errors.Is(err, strconv.ErrRange)
}
