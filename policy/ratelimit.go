// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
)

// RateLimit reads when an exhausted rate limit is reset, from the header of a response
// with any status that was received at the time at. It reads the fields RateLimit and
// RateLimit-Policy of draft-ietf-httpapi-ratelimit-headers, versions 07 to 10, and the
// older pairs RateLimit-Remaining/-Reset (versions 00 to 06) and X-RateLimit-Remaining/
// -Reset. If several limits are exhausted, the latest reset counts, at most 7 days
// ahead. A limit that is not exhausted causes no pause.
func RateLimit(header http.Header, at time.Time) Hold {
	var worst Hold
	for _, hold := range []Hold{
		quotaHold(header, at),
		remainingHold(header, "RateLimit-", at),
		remainingHold(header, "X-RateLimit-", at),
	} {
		if worst.Raw == "" || hold.Until.After(worst.Until) {
			worst = hold
		}
	}
	return worst
}

// quotaHold reads the structured field RateLimit. If a quota has no reset, its policy's
// window is the longest possible one. A field that is malformed in any part is ignored
// as a whole, as the draft says.
func quotaHold(header http.Header, at time.Time) Hold {
	lines := header.Values("RateLimit")
	if len(lines) == 0 {
		return Hold{}
	}
	hold := Hold{Raw: clip(strings.Join(lines, ", "))}
	quotas, ok := readQuotas(lines)
	if !ok {
		hold.Note = "malformed: ignored"
		return hold
	}
	windows := policyWindows(header.Values("RateLimit-Policy"))
	longest, exhausted := time.Duration(-1), false
	for _, q := range quotas {
		if q.remaining > 0 {
			continue
		}
		exhausted = true
		wait, known := q.reset, q.timed
		if !known {
			wait, known = windows[q.name]
		}
		if known {
			longest = max(longest, wait)
		}
	}
	hold.Until, hold.Note = resetHold(exhausted, longest, at)
	return hold
}

// quota is one quota of a RateLimit field.
type quota struct {
	name      string // of its policy; empty in draft 07
	remaining float64
	reset     time.Duration
	timed     bool // it has a reset
}

// readQuotas reads a RateLimit field: "name";r=0;t=60 (drafts 08 to 10), or
// limit=100, remaining=0, reset=60 (draft 07). If any part is malformed, ok is false.
func readQuotas(lines []string) (quotas []quota, ok bool) {
	if dictionary, err := httpsfv.UnmarshalDictionary(lines); err == nil {
		if _, ok := dictionary.Get("remaining"); ok {
			q, ok := readQuota("", func(name string) any {
				member, _ := dictionary.Get(name)
				item, _ := member.(httpsfv.Item)
				return item.Value
			}, "remaining", "reset")
			return []quota{q}, ok
		}
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil, false
	}
	for _, member := range list {
		name, parameters, ok := namedItem(member)
		if !ok {
			return nil, false
		}
		q, ok := readQuota(name, func(name string) any {
			value, _ := parameters.Get(name)
			return value
		}, "r", "t")
		if !ok {
			return nil, false
		}
		quotas = append(quotas, q)
	}
	return quotas, len(quotas) > 0
}

// readQuota reads one quota. The function value returns a parameter, nil if it is absent.
func readQuota(policy string, value func(name string) any, remaining, reset string) (q quota, ok bool) {
	q.name = policy
	if q.remaining, ok = number(value(remaining)); !ok {
		return q, false
	}
	if given := value(reset); given != nil {
		seconds, ok := number(given)
		if !ok || seconds < 0 {
			return q, false
		}
		q.reset, q.timed = roundUp(seconds), true
	}
	return q, true
}

// policyWindows reads the longest window of each policy in a RateLimit-Policy field. It
// returns nil if the field is malformed.
func policyWindows(lines []string) map[string]time.Duration {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil
	}
	windows := make(map[string]time.Duration)
	for _, member := range list {
		name, parameters, ok := namedItem(member)
		if !ok {
			return nil
		}
		value, _ := parameters.Get("w")
		if w, ok := number(value); ok && w >= 0 {
			windows[name] = max(windows[name], roundUp(w))
		}
	}
	return windows
}

// namedItem returns the name and the parameters of a member of either field. The name is
// a string. Some servers send a token, and policies up to draft 07 start with the quota,
// a number: they have no name.
func namedItem(member httpsfv.Member) (name string, parameters *httpsfv.Params, ok bool) {
	item, ok := member.(httpsfv.Item)
	if !ok {
		return "", nil, false
	}
	switch value := item.Value.(type) {
	case string:
		return value, item.Params, true
	case httpsfv.Token:
		return string(value), item.Params, true
	case int64:
		return "", item.Params, true
	}
	return "", nil, false
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

// roundUp converts seconds, which are not negative, to a duration in whole seconds, at
// most 2^31.
func roundUp(seconds float64) time.Duration {
	whole := time.Duration(min(seconds, float64(maxDelta/time.Second)))
	if seconds > float64(whole) && whole < maxDelta/time.Second {
		whole++
	}
	return whole * time.Second
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
		// Reddit sends "0.0". Rounding up keeps numbers above zero above zero.
		if n, ok := decimalSeconds(strings.TrimSpace(line)); ok {
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

// resetWait reads a -Reset: seconds to wait, or a time since 1970 by the origin's clock.
func resetWait(text, date string, at time.Time) (wait time.Duration, ok bool) {
	whole, _, _ := strings.Cut(text, ".")
	if n, err := strconv.ParseInt(whole, 10, 64); err == nil && n > epochSeconds {
		if _, ok := decimalSeconds(text); !ok {
			return 0, false
		}
		reset := time.Unix(n, 0)
		if n > epochMilliseconds {
			reset = time.UnixMilli(n)
		}
		return waitUntil(reset, date, at), true
	}
	wait, ok = decimalSeconds(text)
	return wait, ok && wait >= 0
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
