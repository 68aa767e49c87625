// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// RateLimit reads when an exhausted rate limit is reset, from the header of a response
// with any status that was received at the time at. It reads the field RateLimit of
// draft-ietf-httpapi-ratelimit-headers, versions 07 to 10, and the older pairs
// RateLimit-Remaining/-Reset (versions 00 to 06), X-RateLimit-Remaining/-Reset and
// X-Rate-Limit-Remaining/-Reset. If several limits are exhausted, the latest reset counts, at most 7 days
// ahead. A limit that is not exhausted causes no pause.
func RateLimit(header http.Header, at time.Time) Hold {
	var worst Hold
	for _, hold := range []Hold{
		quotaHold(header, at),
		remainingHold(header, "RateLimit-", at),
		remainingHold(header, "X-RateLimit-", at),
		remainingHold(header, "X-Rate-Limit-", at),
	} {
		if worst.Raw == "" || hold.Until.After(worst.Until) {
			worst = hold
		}
	}
	return worst
}

// quotaHold reads the structured field RateLimit. A field that is malformed in any part is
// ignored as a whole, as the draft says.
func quotaHold(header http.Header, at time.Time) Hold {
	lines := header.Values("RateLimit")
	if len(lines) == 0 {
		return Hold{}
	}
	hold := Hold{Raw: clip(strings.Join(lines, ", ")), Note: "malformed: ignored"}
	if exhausted, reset, ok := readQuotas(lines); ok {
		if reset < 0 {
			reset = longestWindow(header.Values("RateLimit-Policy"))
		}
		hold.Until, hold.Note = resetHold(exhausted, reset, at)
	}
	return hold
}

// longestWindow returns the longest w of a RateLimit-Policy ("name";q=10;w=7200), within which a
// limit is reset. It is negative if there is none.
func longestWindow(lines []string) time.Duration {
	longest := time.Duration(-1)
	list, _ := httpsfv.UnmarshalList(lines)
	for _, member := range list {
		if item, ok := member.(httpsfv.Item); ok {
			value, _ := item.Params.Get("w")
			if window, ok := number(value); ok && window >= 0 {
				longest = max(longest, roundUp(window))
			}
		}
	}
	return longest
}

// readQuotas reads a RateLimit field: "name";r=0;t=60 (drafts 08 to 10), or limit=100,
// remaining=0, reset=60 (draft 07). It reports whether a quota is exhausted, and the longest
// reset of those that are, which is negative if none has one. If any part is malformed, ok
// is false.
func readQuotas(lines []string) (exhausted bool, longest time.Duration, ok bool) {
	longest = -1
	read := func(value func(name string) any, remaining, reset string) bool {
		left, ok := number(value(remaining))
		wait := -1.0
		if given := value(reset); ok && given != nil {
			wait, ok = number(given)
			ok = ok && wait >= 0
		}
		if ok && left <= 0 {
			exhausted = true
			if wait >= 0 {
				longest = max(longest, roundUp(wait))
			}
		}
		return ok
	}
	if dictionary, err := httpsfv.UnmarshalDictionary(lines); err == nil {
		if _, found := dictionary.Get("remaining"); found {
			ok = read(func(name string) any {
				member, _ := dictionary.Get(name)
				item, _ := member.(httpsfv.Item)
				return item.Value
			}, "remaining", "reset")
			return exhausted, longest, ok
		}
	}
	list, err := httpsfv.UnmarshalList(lines)
	ok = err == nil && len(list) > 0
	for _, member := range list {
		item, isItem := member.(httpsfv.Item)
		ok = ok && isItem && read(func(name string) any {
			value, _ := item.Params.Get(name)
			return value
		}, "r", "t")
	}
	return exhausted, longest, ok
}

// number reads a numeric value of a structured field.
func number(value any) (n float64, ok bool) {
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

// remainingHold reads the pair of fields -Remaining and -Reset with a prefix. If there
// are several lines, the smallest remaining number and the latest reset count.
func remainingHold(header http.Header, prefix string, at time.Time) Hold {
	left, resets := header.Values(prefix+"Remaining"), header.Values(prefix+"Reset")
	if len(left) == 0 {
		return Hold{}
	}
	hold := Hold{Raw: clip("remaining " + strings.Join(left, ", ") + "; reset " + strings.Join(resets, ", "))}
	exhausted, valid := false, false
	for _, line := range left {
		if n, ok := decimal(strings.TrimSpace(line)); ok { // Reddit sends "0.0"
			valid, exhausted = true, exhausted || n <= 0
		}
	}
	if !valid {
		hold.Note = "malformed: ignored"
		return hold
	}
	longest := time.Duration(-1)
	for _, line := range resets {
		if wait, ok := resetWait(strings.TrimSpace(line), header.Get("Date"), at); ok {
			longest = max(longest, wait)
		}
	}
	hold.Until, hold.Note = resetHold(exhausted, longest, at)
	return hold
}

// A -Reset above these numbers is a time in seconds or milliseconds since 1970 instead
// of a number of seconds to wait.
const (
	epochSeconds      = 1e9
	epochMilliseconds = 1e12
)

// resetWait reads a -Reset: seconds to wait, or a date or a time since 1970 by the origin's clock.
func resetWait(text, date string, at time.Time) (wait time.Duration, ok bool) {
	if until := ParseDate(text); !until.IsZero() {
		return waitUntil(until, date, at), true
	}
	n, ok := decimal(text)
	switch {
	case !ok || n < 0:
		return 0, false
	case n > epochMilliseconds:
		return waitUntil(time.UnixMilli(int64(min(n, math.MaxInt64/2))), date, at), true
	case n > epochSeconds:
		return waitUntil(time.Unix(int64(n), 0), date, at), true
	}
	return roundUp(n), true
}

// resetHold returns the end of a pause; the reset is unknown if wait is negative.
func resetHold(exhausted bool, wait time.Duration, at time.Time) (until time.Time, note string) {
	switch {
	case !exhausted:
		return time.Time{}, "not exhausted"
	case wait < 0:
		return time.Time{}, "exhausted, but without a reset"
	}
	return holdFor(wait, at)
}
