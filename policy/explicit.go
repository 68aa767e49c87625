// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// explicitCandidates returns the explicit hints about an interval, in a fixed order.
// Those that are not valid are only recorded.
func (h History) explicitCandidates(at time.Time) []candidate {
	var candidates []candidate
	if w, ok := h.Freshness.candidate(); ok {
		candidates = append(candidates, w)
	}
	return append(candidates, h.documentCandidates(at)...)
}

// documentCandidates returns those of the document, and not of the response.
func (h History) documentCandidates(at time.Time) (candidates []candidate) {
	if h.Hints.TTL != nil {
		candidates = append(candidates, ttlCandidate(*h.Hints.TTL, h.Freshness))
	}
	if w, ok := h.Hints.syCandidate(); ok {
		candidates = append(candidates, w)
	}
	if u := h.Hints.UpdateFrequency; u != nil && (u.RRule != "" || u.Text != "") {
		candidates = append(candidates, u.candidate(h.Rhythm, at))
	}
	return candidates
}

// ReadersUntil returns until when the document of an own site asks its readers to wait, given the
// time of its last poll and of its next: by the longest of ttl, sy and update frequency, and out of
// skipHours and skipDays. It is never before next.
func (h History) ReadersUntil(polled, next time.Time) time.Time {
	until := next
	for _, w := range h.documentCandidates(polled) {
		if w.valid && polled.Add(w.wait).After(until) {
			until = polled.Add(w.wait)
		}
	}
	if _, yes := h.Hints.completed(); yes && polled.Add(completeInterval).After(until) {
		until = polled.Add(completeInterval)
	}
	if len(h.Hints.SkipHours)+len(h.Hints.SkipDays) == 0 {
		return until
	}
	return h.Hints.windows().after(until, until, 0)
}

// candidate returns what remains of the freshness lifetime. A lifetime of 0, no-cache,
// no-store, private and must-revalidate are about reuse by caches in general. Content
// management systems put them on very many feeds; they say nothing about an interval.
func (f Freshness) candidate() (candidate, bool) {
	w := candidate{hint: f.Source, raw: f.Raw, wait: f.left()}
	switch {
	case f.Source == "" && f.Raw == "":
		return candidate{}, false
	case f.Source == "":
		w.hint, w.wait, w.note = HintCacheControl, 0, "names no lifetime"
	case f.Lifetime <= 0:
		w.note = "a lifetime of 0 says nothing about an interval"
	default:
		w.valid = true
		if f.Age > 0 {
			w.note = fmt.Sprintf("%d s of it had passed", seconds(f.Age))
		}
	}
	return w, true
}

// ttlCandidate returns the interval of an RSS ttl, which is in minutes. Some publishers
// write seconds: the number is at least a day in minutes, a multiple of 60, and about
// the freshness lifetime in seconds.
func ttlCandidate(ttl int64, f Freshness) candidate {
	w := candidate{hint: HintTTL, raw: strconv.FormatInt(ttl, 10)}
	if ttl <= 0 {
		w.note = "not a positive number of minutes"
		return w
	}
	unit := time.Minute
	lifetime := int64(f.Lifetime / time.Second)
	if ttl >= 1440 && ttl%60 == 0 && max(lifetime-ttl, ttl-lifetime) <= ttl/10 {
		unit = time.Second
		w.note = "taken for seconds: the freshness lifetime is as many"
	}
	w.wait, w.valid = time.Duration(min(ttl, math.MaxInt64/int64(unit)))*unit, true
	return w
}

// syCandidate returns the interval of the syndication module: a period divided by a
// frequency. If only one of the two is given, the other has its default: daily, once. The
// updateBase is not used: it matters only for intervals beyond the usual cap.
func (h Hints) syCandidate() (candidate, bool) {
	if h.SyPeriod == "" && h.SyFrequency == nil {
		return candidate{}, false
	}
	period, frequency := "daily", int64(1)
	if h.SyPeriod != "" {
		period = h.SyPeriod
	}
	if h.SyFrequency != nil {
		frequency = *h.SyFrequency
	}
	length := units[strings.ToUpper(period)]
	w := candidate{hint: HintSy, raw: period + "/" + strconv.FormatInt(frequency, 10)}
	switch {
	case length == 0 || frequency <= 0:
		w.note = "no period or frequency of the module"
	case length == time.Hour && frequency == 1:
		w.note = "the default of WordPress, whatever the site does: says nothing"
	default:
		w.wait, w.valid = length/time.Duration(frequency), true
	}
	return w, true
}

// completed returns the hint that says that no more entries are expected, if any.
func (h Hints) completed() (raw string, yes bool) {
	switch {
	case h.Complete:
		return "itunes:complete", true
	case h.UpdateFrequency != nil && h.UpdateFrequency.Complete:
		return "podcast:updateFrequency complete", true
	case h.Expired:
		return "expired", true
	}
	return "", false
}
