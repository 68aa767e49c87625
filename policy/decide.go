// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"net/http"
	"time"
)

// MaxOwnBackOff is the longest back-off of a site of this process.
const MaxOwnBackOff = 10 * time.Minute

// BarePause is how long a URL is left alone that refuses to be asked and does not say for how long.
const BarePause = time.Hour

// Numbers that the operator does not set.
const (
	maxBarePause     = 24 * time.Hour     // after further refusals in a row, each of which doubles it
	completeInterval = 7 * 24 * time.Hour // of a show that is complete: shows are revived
	unaskedInterval  = 24 * time.Hour     // between unconditional requests that are answered with 304
	maxJitter        = 30 * time.Minute
	unsentInterval   = time.Minute      // first retry of a poll that sent nothing
	maxUnsent        = 10 * time.Minute // last retries of it
	leastUnvalidated = 4 * time.Hour    // between whole downloads that no hint asks for more often
	unheededLimit    = 3                // full answers in a row after which validators count as absent
	rhythmShare      = 12               // polls per gap between entries
	quietShare       = 4                // of the time without a new entry that counts as a gap
	passingShare     = 4                // retries per interval after a failure that may pass
	leastDated       = 3                // entries with a date that make a rhythm
)

// Decide returns when a feed may be polled next. The history is the result of
// [History.Update] with the same answer. The jitter is proportional to random, in [0,1). It is a
// pure function.
//
// The rules, in the order in which they apply:
//
//  1. Explicit hints: freshness lifetime less age, ttl, credible sy, credible
//     update frequency. The longest counts.
//  2. Without such a hint: one twelfth of the gap between entries. That is the median, or
//     a quarter of the time without a new entry if that is larger. Without enough dates:
//     the default, or by the time without a new entry if that is later.
//  3. Clamp to [MinInterval, MaxInterval]. A complete show has 7 days as its floor.
//     A feed with neither validators nor an explicit hint has the median gap or the time
//     without a new entry as its floor, the larger one, at least 4 hours and at most
//     UnvalidatedInterval, which it is without dates.
//  4. A failure that may pass is retried after a quarter of the feed's own interval, then
//     after twice that and so on, up to MaxInterval or its own interval. Other failures
//     start at twice its own interval. A poll that sent nothing is not a failure: it is
//     retried after a minute, later after up to ten.
//  5. Jitter, upward only. It counts from the end of the poll.
//  6. Out of skipHours and skipDays.
//  7. Never before Retry-After, the reset of an exhausted rate limit, or, after a refusal
//     that names no time, an hour, doubled with each further one; and out of the skip windows
//     again.
//
// A poll whose redirect had to wait is made again when that may be followed, after
// MinInterval at the earliest. A feed that points to another one is looked at once in
// MaxInterval, as long as the other one works.
//
// Only rule 6, rule 7, complete shows and a 410 exceed MaxInterval. Only the interval
// after a poll that sent nothing is below MinInterval. Every term is recorded, used or
// not.
//
// For a site of this process ([Rules.OwnSite]), of rule 1 only the freshness lifetime
// counts, and of rules 2, 3 and 6 only the default, MinInterval and MaxInterval.
func Decide(r Rules, h History, a Answer, random float64) Decision {
	// Without the monotonic reading: decisions outlive the process.
	d := builder{at: a.At.Round(0).UTC(), random: unit(random)}
	if a.Failure == FailureGone {
		return d.never(h, a)
	}
	if r.OwnSite {
		d.forReaders(h)
		h.Hints = Hints{}
	}
	switch {
	case a.Unsent():
		d.retryUnsent(r, h, a)
	case a.Pointing:
		d.interval = r.ceiling()
		d.replace(Term{Hint: HintMoved, Seconds: seconds(d.interval), Note: "it is looked whether it still redirects"})
	case a.Failure == FailureHeld:
		d.held(r, a)
	case a.Failure == FailureNone, a.Failure == FailureMoved:
		d.regular(r, h, a.Failure)
	default:
		d.backOff(r, h, a)
	}
	d.jitter(r, h)
	d.next = d.at.Add(d.interval)
	d.leaveWindows(h.Hints, h.Hints.windows().after(d.next, d.next, d.random))
	planned := d.next
	d.hold(r, h, a)
	if d.base > 0 && !r.OwnSite {
		d.window(h.Rhythm)
	}
	if d.next.After(planned) && h.Hints.windows().blocked(d.next) {
		d.leaveWindows(h.Hints, h.Hints.OutOfSkip(d.next, d.next, d.random)) // the hold ends within a window
	}
	return d.decision(h)
}

// builder makes a decision.
type builder struct {
	at       time.Time
	random   float64
	interval time.Duration // until next is set from it
	base     time.Duration
	next     time.Time
	asked    time.Time // the end of the longest pause that the origin asks for
	terms    []Term
	winner   int // index of the term that set the result so far
}

// add records a term without effect on the result.
func (d *builder) add(t Term) { d.terms = append(d.terms, t) }

// replace records a term that wins over all before it: they had no effect.
func (d *builder) replace(t Term) {
	for i := range d.terms {
		d.terms[i].Used = false
	}
	d.use(t)
}

// use records a term that changes the result of those before it, and wins.
func (d *builder) use(t Term) {
	t.Used = true
	d.winner = len(d.terms)
	d.terms = append(d.terms, t)
}

// held is the interval after a poll whose redirect had to wait: until that may be followed.
func (d *builder) held(r Rules, a Answer) {
	d.interval = max(a.HeldFor, 0)
	d.replace(Term{Hint: HintRedirect, Seconds: seconds(d.interval), Note: "until the redirect may be followed"})
	d.floor(Term{Hint: HintFloor}, r.MinInterval)
}

// regular is the interval after a good answer: rules 1 to 3. After a redirect nothing was downloaded.
func (d *builder) regular(r Rules, h History, failure Failure) {
	explicit := d.longest(h.explicitCandidates(d.at))
	switch rhythm, ok := h.rhythm(r, d.at); {
	case explicit:
	case ok && !r.OwnSite:
		d.interval = rhythm.wait
		d.replace(rhythm.term())
	default:
		d.interval = r.DefaultInterval
		d.replace(Term{Hint: HintDefault, Seconds: seconds(r.DefaultInterval)})
	}
	if raw, yes := h.Hints.completed(); yes {
		d.interval = completeInterval
		d.replace(Term{
			Hint: HintComplete, Raw: raw, Seconds: seconds(completeInterval),
			Note: "no more entries are expected",
		})
		d.floor(Term{Hint: HintFloor}, r.MinInterval)
		d.base = d.interval
		return
	}
	d.floor(Term{Hint: HintFloor}, r.MinInterval)
	switch {
	case explicit || r.OwnSite || failure == FailureMoved:
	case !h.Validated:
		d.unvalidated(r, h, "neither validators nor an explicit hint")
	case h.Unheeded >= unheededLimit:
		d.unvalidated(r, h, fmt.Sprintf("validators were not heeded %d times in a row", h.Unheeded))
	}
	d.base = min(d.interval, r.ceiling())
	d.ceiling(r)
	if failure == FailureMoved {
		d.replace(Term{Hint: HintMoved, Seconds: seconds(d.interval), Note: "the feed that it redirects to fails, or has no version yet"})
	}
}

// rhythm returns the interval by the gap between entries, if it decides: it needs enough dates, or
// to be above the default.
func (h History) rhythm(r Rules, at time.Time) (w candidate, ok bool) {
	gap, quiet := h.Rhythm.Median, h.quiet(at)
	w = candidate{hint: HintRhythm, raw: gap.String(), note: "one twelfth of the median gap between entries"}
	if quiet/quietShare > gap {
		gap = quiet / quietShare
		w.raw, w.note = quiet.Truncate(time.Second).String(), "one twelfth of a quarter of the time without a new entry"
	}
	w.wait = gap / rhythmShare
	return w, w.wait > 0 && (h.Rhythm.regular() || w.wait > r.DefaultInterval)
}

// regular reports whether there are enough dates for a median.
func (r Rhythm) regular() bool { return r.Median > 0 || r.Dated >= leastDated }

// quiet returns how long there has been no new entry: since the date of the newest one or since a
// poll found one, whichever is later. It is 0 if neither is known.
func (h History) quiet(at time.Time) time.Duration {
	last := later(h.Rhythm.Newest, h.News)
	if last.IsZero() {
		return 0
	}
	return max(0, at.Sub(last))
}

// unvalidated is the floor of a feed of which each poll is a whole download.
func (d *builder) unvalidated(r Rules, h History, note string) {
	floor := r.UnvalidatedInterval
	if gap := max(leastUnvalidated, h.Rhythm.Median, h.quiet(d.at)); h.Rhythm.regular() && gap < floor {
		floor = gap
		note += "; less than unvalidated_interval, as entries come more often"
	}
	d.floor(Term{Hint: HintUnvalidated, Note: note}, floor)
}

// forReaders records what the document of an own site asks for. It has no effect.
func (d *builder) forReaders(h History) {
	for _, w := range h.documentCandidates(d.at) {
		t := w.term()
		t.Note = cmp.Or(t.Note, "for readers only")
		d.add(t)
	}
	for _, t := range h.Hints.skipTerms(d.at, d.at, d.at) {
		t.Note = cmp.Or(t.Note, "for readers only")
		d.add(t)
	}
}

// longest records the explicit hints and uses the longest valid one. It reports whether
// there was one.
func (d *builder) longest(candidates []candidate) bool {
	longest := -1
	for i, w := range candidates {
		if w.valid && (longest < 0 || w.wait > candidates[longest].wait) {
			longest = i
		}
	}
	for i, w := range candidates {
		t := w.term()
		switch {
		case i == longest:
			d.interval = w.wait
			d.winner, t.Used = len(d.terms), true
		case w.valid && t.Note == "":
			t.Note = "not the longest"
		}
		d.add(t)
	}
	return longest >= 0
}

// floor records a lower bound, which wins if the interval is below it.
func (d *builder) floor(t Term, floor time.Duration) {
	t.Seconds = seconds(floor)
	if d.interval >= floor {
		d.add(t)
		return
	}
	d.interval = floor
	d.replace(t)
}

// ceiling records the cap, which wins if the interval is above it. A min_interval above
// max_interval is the cap.
func (d *builder) ceiling(r Rules) {
	t := Term{Hint: HintCap, Seconds: seconds(r.ceiling())}
	if r.ceiling() > r.MaxInterval {
		t.Note = "min_interval is above max_interval"
	}
	if d.interval <= r.ceiling() {
		d.add(t)
		return
	}
	d.interval = r.ceiling()
	d.use(t)
}

// backOff is the interval after a failure (rule 4), doubling with each failure: from twice the
// feed's own or, if the failure may pass, from a quarter of it.
func (d *builder) backOff(r Rules, h History, a Answer) {
	for _, w := range h.explicitCandidates(d.at) {
		d.add(w.term())
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
	d.add(own)

	limit := max(current, r.ceiling())
	if r.OwnSite {
		limit = max(r.MinInterval, min(MaxOwnBackOff, limit))
	}
	failures := max(h.Failures, 1)
	d.interval = doubled(current, failures, limit)
	if a.Passing() {
		d.interval = doubled(max(current/passingShare, r.MinInterval), failures-1, limit)
	}
	d.replace(Term{Hint: HintBackOff, Raw: string(a.Failure), Seconds: seconds(d.interval), Note: fmt.Sprintf("failures in a row: %d", failures)})
	if a.Failure == FailureUnasked {
		d.floor(Term{Hint: HintUnasked, Note: "only unconditional requests can help"}, min(unaskedInterval, r.ceiling()))
	}
	if a.Status == http.StatusTooManyRequests {
		// The lifetime of a 429 is how long the origin would give the same answer.
		if f := FreshnessOf(a.Header, d.at); f.left() > 0 {
			d.floor(Term{Hint: f.Source, Raw: f.Raw, Note: "of the 429"}, min(f.left(), r.ceiling()))
		}
	}
	d.add(Term{Hint: HintCap, Seconds: seconds(r.ceiling())})
}

// doubled returns a duration that is doubled a number of times, at most limit.
func doubled(length time.Duration, times int, limit time.Duration) time.Duration {
	for ; times > 0 && length < limit; times-- {
		length = min(length, limit/2+1) * 2
	}
	return min(length, limit)
}

// Passing reports whether a failure may be over within hours.
func (a Answer) Passing() bool {
	switch a.Failure {
	case FailureDNS, FailureConnect, FailureProxy, FailureTimeout, FailureTruncated:
		return true
	case FailureStatus:
		return a.Status >= 500
	}
	return false
}

// jitter adds to the interval, so that polls that came together drift apart (rule 5).
// The result is at most the cap, except for complete shows. An interval that is the cap
// has no jitter: less would be too early for the origin, more is against the operator's
// setting. Such polls drift apart by the time that each of them takes.
func (d *builder) jitter(r Rules, h History) {
	if !(r.Jitter > 0) {
		return
	}
	most := time.Duration(float64(d.interval) * min(r.Jitter, 1))
	most = min(most, maxJitter)
	if _, yes := h.Hints.completed(); !yes {
		most = min(most, r.ceiling()-d.interval)
	}
	added := time.Duration(float64(max(most, 0)) * d.random)
	d.interval += added
	d.add(Term{Hint: HintJitter, Seconds: seconds(added), Used: added > 0})
}

// leaveWindows moves the next poll to a time out of skipHours and skipDays (rule 6).
func (d *builder) leaveWindows(h Hints, free time.Time) {
	for _, t := range h.skipTerms(d.at, d.next, free) {
		if t.Used {
			d.use(t)
		} else {
			d.add(t)
		}
	}
	d.next = free
}

// hold moves the next poll behind the pauses that the origin asks for (rule 7). Retry-After has precedence over a rate limit, whichever is later.
func (d *builder) hold(r Rules, h History, a Answer) {
	retry, limit := RetryAfter(a.Header, d.at), RateLimit(a.Header, d.at)
	if !retry.Until.IsZero() && !limit.Until.IsZero() {
		limit.Until, limit.Note = time.Time{}, "Retry-After has precedence"
	}
	d.notBefore(HintRetryAfter, retry)
	d.notBefore(HintRateLimit, limit)
	d.notBefore(a.Holder, Hold{Until: a.NotBefore, Raw: a.Holder})
	d.asked = later(later(retry.Until, limit.Until), a.NotBefore)
	if a.Failure == FailureRateLimited && d.asked.IsZero() && !r.OwnSite {
		pause := Hold{Until: d.at.Add(doubled(BarePause, h.Refusals-1, maxBarePause)), Note: fmt.Sprintf("refusals in a row: %d", h.Refusals)}
		d.notBefore(HintURLCooldown, pause)
		d.asked = pause.Until
	}
}

// windowDated is how many dated entries a feed must have to judge how fast they come.
const windowDated = 5

// window records that entries may come and go between two polls, if those of the document
// cover less time than the interval.
func (d *builder) window(r Rhythm) {
	if interval := d.next.Sub(d.at); r.Dated >= windowDated && r.Median > 0 && r.Median < interval/time.Duration(r.Entries) {
		d.add(Term{
			Hint: HintWindow, Raw: fmt.Sprintf("%d entries", r.Entries), Seconds: seconds(r.Median * time.Duration(r.Entries)),
			Note: "entries may come and go between two polls",
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// notBefore records a hold, which wins if the next poll would be before its end.
func (d *builder) notBefore(hint string, h Hold) {
	if h.Raw == "" && h.Until.IsZero() {
		return
	}
	t := Term{Hint: hint, Raw: clip(h.Raw), Note: h.Note}
	if h.Until.After(d.at) {
		t.Seconds = seconds(h.Until.Sub(d.at))
	}
	if !h.Until.After(d.next) {
		d.add(t)
		return
	}
	d.next = h.Until.Round(0).UTC()
	d.replace(t)
}

// retryUnsent is the interval after a poll that sent nothing: the origin was not
// burdened.
func (d *builder) retryUnsent(r Rules, h History, a Answer) {
	d.interval = doubled(unsentInterval, h.Unsent-1, min(maxUnsent, r.ceiling()))
	d.replace(Term{Hint: HintUnsent, Raw: string(a.Failure), Seconds: seconds(d.interval), Note: "nothing was sent"})
}

// never is the decision after a 410: automatic polling ends.
func (d *builder) never(h History, a Answer) Decision {
	d.next = Never
	d.replace(Term{Hint: HintGone, Raw: fmt.Sprint(a.Status), Note: "automatic polling ends"})
	return d.decision(h)
}

// decision returns the result. Malformed hints of the document come last.
func (d *builder) decision(h History) Decision {
	for _, t := range h.Malformed {
		t.Used = false
		d.add(t)
	}
	return Decision{
		At:         d.at,
		Next:       d.next,
		Interval:   d.next.Sub(d.at),
		Winner:     d.terms[d.winner].Hint,
		Base:       d.base,
		NotBefore:  d.asked.Round(0).UTC(),
		Considered: d.terms,
	}
}

// unit limits a number to [0,1). NaN becomes 0.
func unit(random float64) float64 {
	const belowOne = 1 - 1e-9
	if !(random > 0) {
		return 0
	}
	return min(random, belowOne)
}
