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

// RateLimit reads when an exhausted rate limit is reset, from an answer that came
// at a given time and whatever its status: from the fields RateLimit and
// RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers), and from the older
// RateLimit-Remaining/-Reset and X-RateLimit-Remaining/-Reset. Where several are
// exhausted the latest reset counts, at most 7 days ahead. A limit that is not
// exhausted asks for nothing.
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

// quotaHold reads the structured fields: RateLimit: "name";r=0;t=60, where r is what
// remains and t the seconds to the reset. Where t is missing the policy of that name
// gives the whole window: w. A field that is malformed in any part is ignored as a
// whole, as the draft asks for.
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

// quota is one member of a RateLimit field.
type quota struct {
	name      string
	remaining float64
	reset     time.Duration
	timed     bool // a reset was given
}

// readQuotas reads a RateLimit field; ok is false where any part is malformed.
func readQuotas(lines []string) (quotas []quota, ok bool) {
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return nil, false
	}
	for _, member := range list {
		name, parameters, ok := namedItem(member)
		if !ok {
			return nil, false
		}
		q := quota{name: name}
		if q.remaining, ok = number(parameters, "r"); !ok {
			return nil, false
		}
		if _, given := parameters.Get("t"); given {
			reset, ok := number(parameters, "t")
			if !ok || reset < 0 {
				return nil, false
			}
			q.reset, q.timed = roundUp(reset), true
		}
		quotas = append(quotas, q)
	}
	return quotas, len(quotas) > 0
}

// policyWindows reads the windows of a RateLimit-Policy field by the policies'
// names; of a malformed one nothing.
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
		if w, ok := number(parameters, "w"); ok && w >= 0 {
			windows[name] = max(windows[name], roundUp(w))
		}
	}
	return windows
}

// namedItem takes a member of either field apart: a string with parameters. Older
// versions of the draft had a token for the name.
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
	}
	return "", nil, false
}

// number reads a numeric parameter; ok is false where it is absent or no number.
func number(parameters *httpsfv.Params, name string) (n float64, ok bool) {
	value, _ := parameters.Get(name)
	switch value := value.(type) {
	case int64:
		return float64(value), true
	case float64:
		return value, true
	}
	return 0, false
}

// roundUp turns a number of seconds, which is not negative, into a length of at
// most 2^31 s.
func roundUp(seconds float64) time.Duration {
	whole := time.Duration(min(seconds, float64(maxDelta/time.Second)))
	if seconds > float64(whole) && whole < maxDelta/time.Second {
		whole++
	}
	return whole * time.Second
}

// remainingHold reads a pair of older fields, -Remaining and -Reset with a given
// prefix. Of several lines the least remaining and the latest reset count.
func remainingHold(header http.Header, prefix string, at time.Time) Hold {
	left, resets := header.Values(prefix+"Remaining"), header.Values(prefix+"Reset")
	if len(left) == 0 {
		return Hold{}
	}
	hold := Hold{Raw: clip("remaining " + strings.Join(left, ", ") + "; reset " + strings.Join(resets, ", "))}
	exhausted, valid := false, false
	for _, line := range left {
		// "0.0" is zero (Reddit); rounded up, what is more than zero stays so.
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

// The numbers from which on a -Reset is no length but a time: seconds, and with
// three digits more milliseconds, since 1970.
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

// resetHold makes a hold of a limit's state; a negative wait is an unknown reset.
func resetHold(exhausted bool, wait time.Duration, at time.Time) (until time.Time, note string) {
	switch {
	case !exhausted:
		return time.Time{}, "not exhausted"
	case wait < 0:
		return time.Time{}, "exhausted, but without a reset"
	}
	return holdFor(wait, at)
}
