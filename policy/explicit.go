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

// explicitWishes are the explicit hints about an interval, in a fixed order. They
// are weighed against each other by the caller; one that is not valid is only to be
// recorded.
func (h History) explicitWishes(at time.Time) []wish {
	var wishes []wish
	if w, ok := h.Freshness.wish(); ok {
		wishes = append(wishes, w)
	}
	if h.Hints.TTL != nil {
		wishes = append(wishes, ttlWish(*h.Hints.TTL, h.Freshness))
	}
	if w, ok := h.Hints.syWish(); ok {
		wishes = append(wishes, w)
	}
	if u := h.Hints.UpdateFrequency; u != nil && (u.RRule != "" || u.Text != "") {
		wishes = append(wishes, u.wish(h.Rhythm, at))
	}
	return wishes
}

// wish is what remains of the freshness lifetime. A lifetime of 0, no-cache,
// no-store, private and must-revalidate are about reuse by caches in general. They
// are on very many feeds, put there by content management systems, and say nothing
// about an interval.
func (f Freshness) wish() (wish, bool) {
	w := wish{hint: f.Source, raw: f.Raw, wait: f.left()}
	switch {
	case f.Source == "" && f.Raw == "":
		return wish{}, false
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

// ttlWish is what an RSS ttl asks for: minutes. Some publishers write seconds: a day
// of minutes or more, that could be whole minutes in seconds, and beside it a
// freshness lifetime of about as many seconds, give them away.
func ttlWish(ttl int64, f Freshness) wish {
	w := wish{hint: HintTTL, raw: strconv.FormatInt(ttl, 10)}
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

// syWish is what the syndication module asks for: a period divided by a frequency.
// Once one of the two is there, the other has its default: daily, once. The updateBase
// is not used: it moves polls within intervals that are beyond the usual cap.
func (h Hints) syWish() (wish, bool) {
	if h.SyPeriod == "" && h.SyFrequency == nil {
		return wish{}, false
	}
	period, frequency := "daily", int64(1)
	if h.SyPeriod != "" {
		period = h.SyPeriod
	}
	if h.SyFrequency != nil {
		frequency = *h.SyFrequency
	}
	length := units[strings.ToUpper(period)]
	w := wish{hint: HintSy, raw: period + "/" + strconv.FormatInt(frequency, 10)}
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

// completed says by which hint a feed expects no more entries, and whether it does.
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
