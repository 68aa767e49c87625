// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// Numbers that the operator does not set.
const (
	completeInterval = 7 * 24 * time.Hour // of a show that is complete: shows are revived
	unaskedInterval  = 24 * time.Hour     // between unconditional requests that are answered with 304
	maxJitter        = 30 * time.Minute
	unsentInterval   = time.Minute     // before a poll of which nothing was sent is tried again, at first
	maxUnsent        = time.Hour       // and at last
	coldInterval     = 5 * time.Minute // before a feed that has never answered is tried again, at least
	unheededLimit    = 3               // full answers in a row after which validators count as none
	rhythmShare      = 12              // polls per median gap between entries
)

// Decide says when a feed may be polled next. The history is the one after
// [History.Learn] has seen the answer; now stands for the end of the poll where the
// answer does not say it; chance in [0,1) draws the jitter. It is a pure function.
//
// The rules, in the order in which they are obeyed:
//
//  1. Explicit hints: freshness lifetime less age, ttl, credible sy, credible
//     update frequency. The longest counts.
//  2. Only where there is none: the posting rhythm; where there is neither, the default.
//  3. Clamp to [MinInterval, MaxInterval]; a feed with neither validators nor an
//     explicit hint has UnvalidatedInterval as its floor, a complete show 7 days.
//  4. Failures double the interval, from twice the feed's own up to MaxInterval. For a
//     feed that has never answered it is MinInterval at first, and not less than 5
//     minutes, if what ails the feed may pass. A poll of which nothing was sent is no
//     failure: it is tried again after a minute, later after up to an hour.
//  5. Jitter, upward only. It counts from the end of the poll.
//  6. Out of skipHours and skipDays.
//  7. Never before Retry-After, the reset of an exhausted rate limit, or what the
//     host's pacing says; and out of the skip windows again.
//
// Only rule 6, rule 7, complete shows and a 410 exceed MaxInterval; only a poll of
// which nothing was sent is below MinInterval.
// Every term is recorded, whether it was used or not.
func Decide(r Rules, h History, a Answer, now time.Time, chance float64) Decision {
	at := a.At
	if at.IsZero() {
		at = now
	}
	// Without the monotonic reading: decisions outlive the process.
	d := deliberation{at: at.Round(0).UTC(), chance: unit(chance), winner: -1}
	switch {
	case a.Failure == FailureGone:
		return d.never(h, a)
	case a.Unsent():
		d.retryUnsent(r, h, a)
	case a.Failure == FailureNone, a.Failure == FailureHeld:
		d.regular(r, h)
		d.base = d.interval
	default:
		d.backOff(r, h, a)
	}
	d.jitter(r, h)
	d.next = d.at.Add(d.interval)
	d.leaveWindows(h.Hints)
	planned := d.next
	d.hold(a)
	if d.next.After(planned) && h.Hints.windows().blocked(d.next) {
		d.leaveWindows(h.Hints) // the hold ends within a window
	}
	return d.decision(h)
}

// deliberation is a decision in the making.
type deliberation struct {
	at       time.Time
	chance   float64
	interval time.Duration // until next is set from it
	base     time.Duration
	next     time.Time
	terms    []Term
	winner   int // index of the term that set the result so far
}

// consider records a term that did not shape the result.
func (d *deliberation) consider(t Term) { d.terms = append(d.terms, t) }

// adopt records a term that takes the place of all before it.
func (d *deliberation) adopt(t Term) {
	for i := range d.terms {
		d.terms[i].Used = false
	}
	d.adapt(t)
}

// adapt records a term that works on the result of those before it, and wins.
func (d *deliberation) adapt(t Term) {
	t.Used = true
	d.winner = len(d.terms)
	d.terms = append(d.terms, t)
}

// regular is the interval after a good answer: rules 1 to 3.
func (d *deliberation) regular(r Rules, h History) {
	explicit := d.weigh(h.explicitWishes(d.at))
	switch rhythm := h.Rhythm.Median / rhythmShare; {
	case explicit:
	case rhythm > 0 && !r.NoRhythm:
		d.interval = rhythm
		d.adopt(Term{
			Hint: HintRhythm, Raw: h.Rhythm.Median.String(), Seconds: seconds(rhythm),
			Note: "one twelfth of the median gap between entries",
		})
	default:
		d.interval = r.DefaultInterval
		d.adopt(Term{Hint: HintDefault, Seconds: seconds(r.DefaultInterval)})
	}
	if raw, yes := h.Hints.completed(); yes {
		d.interval = completeInterval
		d.adopt(Term{
			Hint: HintComplete, Raw: raw, Seconds: seconds(completeInterval),
			Note: "no more entries are expected",
		})
		d.raise(Term{Hint: HintFloor}, r.MinInterval)
		return
	}
	d.raise(Term{Hint: HintFloor}, r.MinInterval)
	if !explicit && !h.Validated {
		d.raise(Term{Hint: HintUnvalidated, Note: "neither validators nor an explicit hint"}, r.UnvalidatedInterval)
	} else if !explicit && h.Unheeded >= unheededLimit {
		d.raise(Term{
			Hint: HintUnvalidated,
			Note: fmt.Sprintf("validators were not heeded %d times in a row", h.Unheeded),
		}, r.UnvalidatedInterval)
	}
	d.lower(r)
}

// weigh records the explicit hints and adopts the longest; it reports whether there
// was a valid one.
func (d *deliberation) weigh(wishes []wish) bool {
	longest := -1
	for i, w := range wishes {
		if w.valid && (longest < 0 || w.wait > wishes[longest].wait) {
			longest = i
		}
	}
	for i, w := range wishes {
		t := w.term()
		switch {
		case i == longest:
			d.interval = w.wait
			d.winner, t.Used = len(d.terms), true
		case w.valid && t.Note == "":
			t.Note = "not the longest"
		}
		d.consider(t)
	}
	return longest >= 0
}

// raise records a floor, which wins where the interval is below it.
func (d *deliberation) raise(t Term, floor time.Duration) {
	t.Seconds = seconds(floor)
	if d.interval >= floor {
		d.consider(t)
		return
	}
	d.interval = floor
	d.adopt(t)
}

// lower records the cap, which wins where the interval is above it. A min_interval
// above max_interval is the cap then.
func (d *deliberation) lower(r Rules) {
	t := Term{Hint: HintCap, Seconds: seconds(r.ceiling())}
	if r.ceiling() > r.MaxInterval {
		t.Note = "min_interval is above max_interval"
	}
	if d.interval <= r.ceiling() {
		d.consider(t)
		return
	}
	d.interval = r.ceiling()
	d.adapt(t)
}

// backOff is the interval after a failure (rule 4): from twice the feed's own,
// doubling with each failure up to the cap. It is never below the feed's own.
func (d *deliberation) backOff(r Rules, h History, a Answer) {
	for _, w := range h.explicitWishes(d.at) {
		d.consider(w.term())
	}
	own := Term{Hint: HintInterval, Note: "before the failures"}
	current := h.Interval
	if current <= 0 {
		current, own.Note = r.DefaultInterval, "the default: nothing was learned yet"
	}
	current = min(max(current, r.MinInterval), r.ceiling())
	if raw, yes := h.Hints.completed(); yes {
		current, own.Raw = max(completeInterval, r.MinInterval), raw
	}
	own.Seconds = seconds(current)
	d.consider(own)

	limit := max(current, r.ceiling())
	if r.MaxBackOff > 0 {
		limit = max(current, min(r.MaxBackOff, limit))
	}
	failures := max(h.Failures, 1)
	d.interval = grown(current, failures, limit)
	note := fmt.Sprintf("failures in a row: %d", failures)
	if cold := grown(max(coldInterval, r.MinInterval), failures-1, limit); !h.Answered && h.Interval <= 0 && a.passing() && cold < d.interval {
		d.interval = cold
		note += "; the feed has never answered"
	}
	d.adopt(Term{Hint: HintBackOff, Raw: string(a.Failure), Seconds: seconds(d.interval), Note: note})
	if a.Failure == FailureUnasked {
		d.raise(Term{Hint: HintUnasked, Note: "only unconditional requests can help"}, min(unaskedInterval, r.ceiling()))
	}
	if a.Status == http.StatusTooManyRequests {
		// The lifetime of a 429 is how long its sender wants to give no other answer.
		if f := FreshnessOf(a.Header, d.at); f.left() > 0 {
			d.raise(Term{Hint: f.Source, Raw: f.Raw, Note: "of the 429"}, min(f.left(), r.ceiling()))
		}
	}
	d.consider(Term{Hint: HintCap, Seconds: seconds(r.ceiling())})
}

// grown is a length that is doubled so many times, at most a limit.
func grown(length time.Duration, times int, limit time.Duration) time.Duration {
	for ; times > 0 && length > 0 && length < limit; times-- {
		length = min(length, limit/2+1) * 2
	}
	return min(length, limit)
}

// passing reports whether a failure may be over within minutes.
func (a Answer) passing() bool {
	switch a.Failure {
	case FailureDNS, FailureConnect, FailureTimeout, FailureTruncated:
		return true
	case FailureStatus:
		return a.Status >= 500
	}
	return false
}

// jitter adds to the interval, so that polls that fell together drift apart (rule
// 5). It stays within the cap, which only a complete show is above. An interval as
// long as the cap has none: less would be too early for the origin, and more is not
// the operator's wish. Such polls drift apart by the time that each takes, and where
// failures have led to the cap, by the jitter on the way there.
func (d *deliberation) jitter(r Rules, h History) {
	if !(r.Jitter > 0) {
		return
	}
	room := time.Duration(float64(d.interval) * min(r.Jitter, 1))
	room = min(room, maxJitter)
	if _, yes := h.Hints.completed(); !yes {
		room = min(room, r.ceiling()-d.interval)
	}
	added := time.Duration(float64(max(room, 0)) * d.chance)
	d.interval += added
	d.consider(Term{Hint: HintJitter, Seconds: seconds(added), Used: added > 0, Note: "added to the interval"})
}

// leaveWindows moves the next poll out of skipHours and skipDays (rule 6).
func (d *deliberation) leaveWindows(h Hints) {
	free := h.windows().after(d.next, d.chance)
	for _, t := range h.skipTerms(d.at, d.next, free) {
		if t.Used {
			d.adapt(t)
		} else {
			d.consider(t)
		}
	}
	d.next = free
}

// hold keeps the next poll from being before what the origin or the host's pacing
// asks for (rule 7). Retry-After goes before a rate limit, whichever is later.
func (d *deliberation) hold(a Answer) {
	retry, limit := RetryAfter(a.Header, d.at), RateLimit(a.Header, d.at)
	if !retry.Until.IsZero() && !limit.Until.IsZero() {
		limit.Until, limit.Note = time.Time{}, "Retry-After goes before it"
	}
	d.notBefore(HintRetryAfter, retry)
	d.notBefore(HintRateLimit, limit)
	d.notBefore(cmp.Or(a.Holder, HintHostSlot), Hold{Until: a.NotBefore, Raw: a.Holder})
}

// notBefore records a hold, which wins where the next poll would be before its end.
func (d *deliberation) notBefore(hint string, h Hold) {
	if h.Raw == "" && h.Until.IsZero() {
		return
	}
	t := Term{Hint: hint, Raw: clip(h.Raw), Note: h.Note}
	if h.Until.After(d.at) {
		t.Seconds = seconds(h.Until.Sub(d.at))
	}
	if !h.Until.After(d.next) {
		d.consider(t)
		return
	}
	d.next = h.Until.Round(0).UTC()
	d.adopt(t)
}

// retryUnsent is the interval after a poll of which nothing was sent, so that there
// is nothing to keep apart from.
func (d *deliberation) retryUnsent(r Rules, h History, a Answer) {
	d.interval = grown(unsentInterval, h.Unsent-1, min(maxUnsent, r.ceiling()))
	d.adopt(Term{Hint: HintUnsent, Raw: string(a.Failure), Seconds: seconds(d.interval), Note: "nothing was sent"})
}

// never is the decision after a 410: automatic polling ends.
func (d *deliberation) never(h History, a Answer) Decision {
	d.next = Never
	d.adopt(Term{Hint: HintGone, Raw: fmt.Sprint(a.Status), Note: "automatic polling ends"})
	return d.decision(h)
}

// decision closes the record. Hints of the document that were no use come last.
func (d *deliberation) decision(h History) Decision {
	for _, t := range h.Malformed {
		t.Used = false
		d.consider(t)
	}
	decided := Decision{
		At:         d.at,
		Next:       d.next,
		Interval:   d.next.Sub(d.at),
		Base:       d.base,
		Considered: d.terms,
	}
	if d.winner >= 0 {
		decided.Winner = d.terms[d.winner].Hint
	}
	return decided
}

// unit brings a share into [0,1); what is none is 0.
func unit(chance float64) float64 {
	const belowOne = 1 - 1e-9
	if !(chance > 0) {
		return 0
	}
	return min(chance, belowOne)
}
