// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// noon is the end of most polls in these tests: a Wednesday, 12:00 GMT.
var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

const day = 24 * time.Hour

// header makes a header of pairs of field names and values.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// good is a 200 with an ETag and further fields.
func good(pairs ...string) Answer {
	return Answer{At: noon, Status: 200, Header: header(append([]string{"ETag", `"v1"`}, pairs...)...)}
}

// failed is a failure after a request, with a status and further fields.
func failed(failure Failure, status int, pairs ...string) Answer {
	return Answer{Asked: noon.Add(-time.Second), At: noon, Status: status, Failure: failure, Header: header(pairs...)}
}

// after is the first answer of a feed, with the document that it brought.
func after(a Answer, d Document) History { return History{}.Update(a, &d, false) }

// validated is the history of a feed with validators and the given hints.
func validated(h Hints) History { return History{Hints: h, Validated: true} }

// quiet is the history of a feed with validators whose newest entry is so old.
func quiet(since time.Duration, r Rhythm) History {
	r.Newest = noon.Add(-since)
	return History{Validated: true, Rhythm: r}
}

// news is a history with a new entry so long ago.
func news(since time.Duration, h History) History {
	h.News = noon.Add(-since)
	return h
}

func ptr(n int64) *int64 { return &n }

// find returns the first term with a hint.
func find(d Decision, hint string) (Term, bool) {
	i := slices.IndexFunc(d.Considered, func(t Term) bool { return t.Hint == hint })
	if i < 0 {
		return Term{}, false
	}
	return d.Considered[i], true
}

func check(t *testing.T, d Decision, winner string, wait time.Duration) {
	t.Helper()
	if d.Winner != winner || d.Interval != wait || !d.Next.Equal(d.At.Add(wait)) {
		t.Errorf("%s wins with %v (next %v), want %s with %v\n%+v", d.Winner, d.Interval, d.Next, winner, wait, d.Considered)
	}
	if term, ok := find(d, winner); !ok || !term.Used && term.Hint != HintGone {
		for _, term := range d.Considered {
			if term.Hint == winner && term.Used {
				return
			}
		}
		t.Errorf("the winner %s is not recorded as used: %+v", winner, d.Considered)
	}
}

// Hints that say nothing about an interval are recorded with a reason, and not used.
func TestHintsThatSayNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer Answer
		doc    Document
		hint   string
	}{
		{"max-age=0", good("Cache-Control", "max-age=0"), Document{}, HintMaxAge},
		{"s-maxage=0 before a max-age", good("Cache-Control", "s-maxage=0, max-age=7200"), Document{}, HintSMaxAge},
		{"no-cache", good("Cache-Control", "no-cache"), Document{}, HintCacheControl},
		{"expired long ago", good("Expires", "Wed, 11 Jan 1984 05:00:00 GMT"), Document{}, HintExpires},
		{"sy hourly/1", good(), Document{Hints: Hints{SyPeriod: "hourly", SyFrequency: ptr(1)}}, HintSy},
		{"sy with an unknown period", good(), Document{Hints: Hints{SyPeriod: "fortnightly"}}, HintSy},
		{"ttl of 0", good(), Document{Hints: Hints{TTL: ptr(0)}}, HintTTL},
		{"text of an update frequency", good(), Document{Hints: Hints{UpdateFrequency: &UpdateFrequency{Text: "weekly"}}}, HintUpdateFrequency},
		{"malformed in the document", good(), Document{Malformed: []Term{{Hint: "skip-hours", Raw: "25", Note: "no hour", Used: true}}}, HintSkipHours},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := Decide(DefaultRules(), after(test.answer, test.doc), test.answer, 0)
			check(t, d, HintDefault, time.Hour)
			term, ok := find(d, test.hint)
			if !ok || term.Used || term.Note == "" {
				t.Errorf("%s is recorded as %+v (%v), want unused with a note", test.hint, term, ok)
			}
		})
	}
}

// Rules 1 to 3: the longest explicit hint; without one the rhythm or the default; floors, cap
// and completed shows.
func TestRegularInterval(t *testing.T) {
	custom := func(change func(*Rules)) Rules {
		r := DefaultRules()
		change(&r)
		return r
	}
	wide := custom(func(r *Rules) { r.MaxInterval = 90 * day })
	often := custom(func(r *Rules) { r.DefaultInterval = 90 * time.Minute })
	bare := Answer{At: noon, Status: 200, Header: header()}
	for _, test := range []struct {
		name    string
		rules   Rules
		history History
		winner  string
		wait    time.Duration
	}{
		{"Expires", wide, after(good("Date", "Wed, 04 Mar 2026 12:00:00 GMT", "Expires", "Wed, 04 Mar 2026 15:00:00 GMT"), Document{Hints: Hints{}}), HintExpires, 3 * time.Hour},
		{"less Age", wide, after(good("Cache-Control", "max-age=10800", "Age", "3600"), Document{Hints: Hints{}}), HintMaxAge, 2 * time.Hour},
		{"spent by Age: the floor", wide, after(good("Cache-Control", "max-age=7200", "Age", "9000"), Document{Hints: Hints{}}), HintFloor, time.Hour},
		{"ttl in whole years", wide, after(good(), Document{Hints: Hints{TTL: ptr(1 << 62)}}), HintCap, 90 * day},
		{"ttl of seconds", wide, after(good("Cache-Control", "max-age=7200"), Document{Hints: Hints{TTL: ptr(7200)}}), HintMaxAge, 2 * time.Hour},
		{"ttl that is no whole minutes in seconds", wide, after(good("Cache-Control", "max-age=7201"), Document{Hints: Hints{TTL: ptr(7201)}}), HintTTL, 7201 * time.Minute},
		{"ttl of a week is minutes", wide, after(good("Cache-Control", "max-age=600"), Document{Hints: Hints{TTL: ptr(10080)}}), HintTTL, 7 * day},
		{"small ttl: the floor", wide, after(good(), Document{Hints: Hints{TTL: ptr(5)}}), HintFloor, time.Hour},
		{"sy", wide, after(good(), Document{Hints: Hints{SyPeriod: "daily", SyFrequency: ptr(2)}}), HintSy, 12 * time.Hour},
		{"sy without a period is daily", wide, after(good(), Document{Hints: Hints{SyFrequency: ptr(4)}}), HintSy, 6 * time.Hour},
		{"sy hourly alone says nothing", wide, after(good(), Document{Hints: Hints{SyPeriod: "hourly"}}), HintDefault, time.Hour},
		{"sy hourly/4 is a hint", wide, after(good(), Document{Hints: Hints{SyPeriod: "hourly", SyFrequency: ptr(4)}}), HintFloor, time.Hour},
		{"update frequency", wide, after(good(), Document{Hints: Hints{UpdateFrequency: &UpdateFrequency{RRule: "FREQ=WEEKLY", DTStart: "2026-03-02T12:00:00Z"}}}), HintUpdateFrequency, 7 * day},
		{"the longest", wide, after(good("Cache-Control", "max-age=7200"), Document{Hints: Hints{TTL: ptr(240), SyPeriod: "daily", SyFrequency: ptr(8)}}), HintTTL, 4 * time.Hour},
		{"the first of equals", wide, after(good("Cache-Control", "max-age=7200"), Document{Hints: Hints{TTL: ptr(120)}}), HintMaxAge, 2 * time.Hour},
		{"nothing known", often, after(good(), Document{}), HintDefault, 90 * time.Minute},
		{"a weekly blog", often, after(good(), Document{Rhythm: Rhythm{Median: 7 * day}}), HintRhythm, 14 * time.Hour},
		{"a busy feed", often, after(good(), Document{Rhythm: Rhythm{Median: time.Hour}}), HintFloor, time.Hour},
		{"entries that come at once", often, quiet(5*day, Rhythm{Dated: 10}), HintRhythm, 150 * time.Minute},
		{"quiet for less than four gaps", often, quiet(4*day, Rhythm{Median: day}), HintRhythm, 2 * time.Hour},
		{"quiet for longer", often, quiet(12*day, Rhythm{Median: day}), HintRhythm, 6 * time.Hour},
		{"dead for years", DefaultRules(), quiet(5*365*day, Rhythm{Median: day}), HintCap, day},
		{"dead for years, two entries", DefaultRules(), quiet(5*365*day, Rhythm{Dated: 2}), HintCap, day},
		{"one entry, a day old", often, quiet(day, Rhythm{Dated: 1}), HintDefault, 90 * time.Minute},
		{"old dates, a new entry yesterday", often, news(day, quiet(365*day, Rhythm{Median: 8 * time.Hour})), HintFloor, time.Hour},
		{"no dates, no new entry for 8 days", often, news(8*day, validated(Hints{})), HintRhythm, 4 * time.Hour},
		{"a date of tomorrow", often, quiet(-day, Rhythm{Median: 2 * day}), HintRhythm, 4 * time.Hour},
		{"an explicit hint goes before it, though it is shorter", often, after(good(), Document{Hints: Hints{TTL: ptr(120)}, Rhythm: Rhythm{Median: 7 * day}}), HintTTL, 2 * time.Hour},

		{"cap", DefaultRules(), after(good("Cache-Control", "max-age=31536000"), Document{}), HintCap, day},
		{"floor above the cap", custom(func(r *Rules) { r.MinInterval = 48 * time.Hour }), after(good("Cache-Control", "max-age=900"), Document{}), HintFloor, 48 * time.Hour},
		{"floor above the cap is the cap", custom(func(r *Rules) { r.MinInterval = 48 * time.Hour }), after(good("Cache-Control", "max-age=9000000"), Document{}), HintCap, 48 * time.Hour},
		{"no validators, no hint", DefaultRules(), after(bare, Document{}), HintUnvalidated, day},
		{"no validators, busy", DefaultRules(), after(bare, Document{Rhythm: Rhythm{Median: 30 * time.Minute}}), HintUnvalidated, 4 * time.Hour},
		{"no validators, 6 hours apart", DefaultRules(), after(bare, Document{Rhythm: Rhythm{Median: 6 * time.Hour}}), HintUnvalidated, 6 * time.Hour},
		{"no validators, entries that come at once", DefaultRules(), after(bare, Document{Rhythm: Rhythm{Dated: 10, Newest: noon.Add(-10 * time.Hour)}}), HintUnvalidated, 10 * time.Hour},
		{"no validators, busy and then quiet", DefaultRules(), after(bare, Document{Rhythm: Rhythm{Median: time.Hour, Newest: noon.Add(-3 * day)}}), HintUnvalidated, day},
		{"no validators, two dates", DefaultRules(), after(bare, Document{Rhythm: Rhythm{Dated: 2, Newest: noon}}), HintUnvalidated, day},
		{"no validators, as the operator wishes", custom(func(r *Rules) { r.UnvalidatedInterval = 2 * time.Hour }), after(bare, Document{Rhythm: Rhythm{Median: 6 * time.Hour}}), HintUnvalidated, 2 * time.Hour},
		{"no validators, max-age=0", DefaultRules(), after(Answer{At: noon, Status: 200, Header: header("Cache-Control", "max-age=0")}, Document{}), HintUnvalidated, day},
		{"no validators, a hint", DefaultRules(), after(bare, Document{Hints: Hints{TTL: ptr(120)}}), HintTTL, 2 * time.Hour},
		{"no validators, a cap below", custom(func(r *Rules) { r.MaxInterval = 6 * time.Hour }), after(bare, Document{}), HintCap, 6 * time.Hour},
		{"validators unheeded twice", DefaultRules(), History{Validated: true, Unheeded: 2}, HintDefault, time.Hour},
		{"validators unheeded thrice", DefaultRules(), History{Validated: true, Unheeded: 3}, HintUnvalidated, day},
		{"validators unheeded, busy", DefaultRules(), History{Validated: true, Unheeded: 3, Rhythm: Rhythm{Median: time.Hour}}, HintUnvalidated, 4 * time.Hour},
		{"validators unheeded, a hint", DefaultRules(), History{Validated: true, Unheeded: 9, Hints: Hints{TTL: ptr(120)}}, HintTTL, 2 * time.Hour},
		{"itunes:complete", DefaultRules(), validated(Hints{Complete: true, TTL: ptr(60)}), HintComplete, 7 * day},
		{"expired", DefaultRules(), validated(Hints{Expired: true}), HintComplete, 7 * day},
		{"update frequency complete", DefaultRules(), validated(Hints{UpdateFrequency: &UpdateFrequency{RRule: "FREQ=DAILY", Complete: true}}), HintComplete, 7 * day},
		{"complete below the floor", custom(func(r *Rules) { r.MinInterval = 30 * day }), validated(Hints{Complete: true}), HintFloor, 30 * day},
	} {
		t.Run(test.name, func(t *testing.T) {
			check(t, Decide(test.rules, test.history, good(), 0), test.winner, test.wait)
		})
	}
}

// Rule 5: jitter, upward only, at most 30 minutes and within the cap; from the end of the poll.
func TestJitter(t *testing.T) {
	for _, test := range []struct {
		name   string
		hints  Hints
		jitter float64
		chance float64
		wait   time.Duration
	}{
		{"half of a tenth", Hints{TTL: ptr(120)}, 0.1, 0.5, 2*time.Hour + 6*time.Minute},
		{"turned off", Hints{TTL: ptr(120)}, 0, 0.9, 2 * time.Hour},
		{"at most 30 minutes", Hints{TTL: ptr(1200)}, 0.1, 0.5, 20*time.Hour + 15*time.Minute},
		{"not beyond the cap", Hints{TTL: ptr(1440)}, 0.1, 0.5, day},
		{"up to the cap", Hints{TTL: ptr(1420)}, 0.1, 0.5, day - 10*time.Minute},
		{"a complete show may exceed it", Hints{Complete: true}, 0.1, 0.5, 7*day + 15*time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := DefaultRules()
			r.Jitter = test.jitter
			d := Decide(r, validated(test.hints), good(), test.chance)
			if d.Interval != test.wait || !d.Next.Equal(noon.Add(test.wait)) {
				t.Errorf("next in %v at %v, want in %v: %+v", d.Interval, d.Next, test.wait, d.Considered)
			}
			if d.Winner == HintJitter || d.Base > d.Interval {
				t.Errorf("jitter wins, or is in the base %v", d.Base)
			}
		})
	}
}

// Rule 4: failures double the interval, from a quarter of it if they may pass; a success ends that
// at once.
func TestBackOff(t *testing.T) {
	r := DefaultRules()
	weekly := History{Validated: true, Interval: 3 * time.Hour}
	monthly := History{Validated: true, Interval: day}
	for _, test := range []struct {
		name     string
		history  History
		failures int
		answer   Answer
		winner   string
		wait     time.Duration
	}{
		{"first", weekly, 1, failed(FailureNotFeed, 200), HintBackOff, 6 * time.Hour},
		{"fourth", weekly, 4, failed(FailureNotFound, 404), HintBackOff, day},
		{"after years", weekly, 1 << 30, failed(FailureDNS, 0), HintBackOff, day},
		{"a 502 of a feed that waits a day", monthly, 1, failed(FailureStatus, 502), HintBackOff, 6 * time.Hour},
		{"two of them", monthly, 2, failed(FailureStatus, 502), HintBackOff, 12 * time.Hour},
		{"no connection", monthly, 1, failed(FailureConnect, 0), HintBackOff, 6 * time.Hour},
		{"a timeout", monthly, 1, failed(FailureTimeout, 0), HintBackOff, 6 * time.Hour},
		{"truncated", monthly, 1, failed(FailureTruncated, 200), HintBackOff, 6 * time.Hour},
		{"a 404 of a feed that waits a day", monthly, 1, failed(FailureNotFound, 404), HintBackOff, day},
		{"a quarter below the floor", weekly, 1, failed(FailureTimeout, 0), HintBackOff, time.Hour},
		{"and then", weekly, 6, failed(FailureTimeout, 0), HintBackOff, day},
		{"bare 429", weekly, 1, failed(FailureRateLimited, 429), HintBackOff, 6 * time.Hour},
		{"no interval yet", History{Answered: true}, 1, failed(FailureConnect, 0), HintBackOff, time.Hour},
		{"never answered", History{}, 1, failed(FailureStatus, 503), HintBackOff, time.Hour},
		{"never answered, third", History{}, 3, failed(FailureTruncated, 200), HintBackOff, 4 * time.Hour},
		{"never answered, with 403", History{}, 1, failed(FailureForbidden, 403), HintBackOff, 2 * time.Hour},
		{"never answered, with a Retry-After", History{}, 1, failed(FailureStatus, 503, "Retry-After", "5400"), HintRetryAfter, 90 * time.Minute},
		{"an interval of former rules", History{Interval: 90 * day}, 1, failed(FailureConnect, 0), HintBackOff, 6 * time.Hour},
		{"a complete show", History{Interval: 7 * day, Hints: Hints{Complete: true}}, 1, failed(FailureConnect, 0), HintBackOff, 42 * time.Hour},
		{"a complete show, third", History{Interval: 7 * day, Hints: Hints{Complete: true}}, 3, failed(FailureConnect, 0), HintBackOff, 7 * day},
		{"429 with a lifetime", History{}, 1, failed(FailureRateLimited, 429, "Cache-Control", "max-age=36000"), HintMaxAge, 10 * time.Hour},
		{"429 with a lifetime above the cap", History{}, 1, failed(FailureRateLimited, 429, "Cache-Control", "max-age=360000"), HintMaxAge, day},
		{"429 with a short lifetime", History{}, 1, failed(FailureRateLimited, 429, "Cache-Control", "max-age=60"), HintBackOff, 2 * time.Hour},
		{"404 with a lifetime", History{}, 1, failed(FailureNotFound, 404, "Cache-Control", "max-age=36000"), HintBackOff, 2 * time.Hour},
		{"304 to an unconditional request", History{}, 1, failed(FailureUnasked, 304), HintUnasked, day},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := test.history
			h.Failures = test.failures - 1
			h = h.Update(test.answer, nil, false)
			d := Decide(r, h, test.answer, 0)
			check(t, d, test.winner, test.wait)
			if h = h.Decided(d); h.Interval != test.history.Interval {
				t.Errorf("a failure made the interval %v of %v", h.Interval, test.history.Interval)
			}
		})
	}

	t.Run("a success ends it", func(t *testing.T) {
		h := weekly
		h.Freshness = Freshness{Source: HintMaxAge, Raw: "max-age=10800", Lifetime: 3 * time.Hour}
		for range 5 {
			h = h.Update(failed(FailureStatus, 500), nil, false)
		}
		unchanged := Answer{At: noon, Status: 304, Header: header()}
		h = h.Update(unchanged, nil, false)
		check(t, Decide(r, h, unchanged, 0), HintMaxAge, 3*time.Hour)
	})
}

// Rule 6: out of skipHours and skipDays.
func TestSkipWindowsInDecisions(t *testing.T) {
	afternoon := []int{13, 14, 15}
	for _, test := range []struct {
		name   string
		hints  Hints
		answer Answer
		chance float64
		winner string
		next   time.Time
	}{
		{"free", Hints{SkipHours: []int{3}}, good(), 0, HintDefault, noon.Add(time.Hour)},
		{"spread over the hour", Hints{SkipHours: afternoon}, good(), 0.5, HintSkipHours, noon.Add(4*time.Hour + 30*time.Minute)},
		{"days", Hints{SkipDays: []string{"Wednesday"}}, good(), 0, HintSkipDays, noon.Add(12 * time.Hour)},
		{"days and hours", Hints{SkipHours: []int{0, 1, 13}, SkipDays: []string{"Wednesday"}}, good(), 0, HintSkipDays, noon.Add(14 * time.Hour)},
		{"back-off", Hints{SkipHours: []int{14}}, failed(FailureNotFound, 404), 0, HintSkipHours, noon.Add(3 * time.Hour)},
		{"a hold that ends in a window", Hints{SkipHours: []int{20, 21}}, good("Retry-After", "30000"), 0, HintSkipHours, noon.Add(10 * time.Hour)},
		{"twice", Hints{SkipHours: []int{13, 20, 21}}, good("Retry-After", "30000"), 0, HintSkipHours, noon.Add(10 * time.Hour)},
		{"days, and a pause as long", Hints{SkipDays: allDays()[3:]}, good("Retry-After", "216000"), 0, HintRetryAfter, noon.Add(60 * time.Hour)},
		{"days, and a pause of half of them", Hints{SkipDays: allDays()[3:]}, good("Retry-After", "86400"), 0, HintSkipDays, noon.Add(49 * time.Hour)},
		{"a poll that was not started", Hints{SkipHours: []int{12}}, Answer{At: noon, Failure: FailureNotStarted}, 0, HintSkipHours, noon.Add(time.Hour)},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := validated(test.hints).Update(test.answer, &Document{Hints: test.hints}, false)
			d := Decide(DefaultRules(), h, test.answer, test.chance)
			check(t, d, test.winner, test.next.Sub(noon))
		})
	}
}

func allHours() []int {
	var hours []int
	for h := range 24 {
		hours = append(hours, h)
	}
	return hours
}

func allDays() []string {
	var days []string
	for d := range 7 {
		days = append(days, time.Weekday(d).String())
	}
	return days
}

// Rule 7: never before Retry-After, a rate limit's reset, or a pause.
// TestRetryAfter and TestRateLimit have the values of the fields.
func TestHolds(t *testing.T) {
	held := func(a Answer, after time.Duration, holder string) Answer {
		a.NotBefore, a.Holder = noon.Add(after), holder
		return a
	}
	for _, test := range []struct {
		name   string
		answer Answer
		winner string
		wait   time.Duration
	}{
		{"429, beyond the cap of intervals", failed(FailureRateLimited, 429, "Retry-After", "172800"), HintRetryAfter, 2 * day},
		{"429, shorter than the back-off", failed(FailureRateLimited, 429, "Retry-After", "60"), HintBackOff, 2 * time.Hour},
		{"302 to another feed", failed(FailureHeld, 302, "Retry-After", "172800"), HintRetryAfter, 2 * day},
		{"200", good("Retry-After", "36000"), HintRetryAfter, 10 * time.Hour},
		{"429 with a lifetime and Retry-After", failed(FailureRateLimited, 429, "Retry-After", "18000", "Cache-Control", "max-age=36000"), HintMaxAge, 10 * time.Hour},
		{"rate limit on 200", good("RateLimit", `"default";r=0;t=7200`), HintRateLimit, 2 * time.Hour},
		{"Retry-After goes before a rate limit", good("RateLimit", `"default";r=0;t=9000`, "Retry-After", "7200"), HintRetryAfter, 2 * time.Hour},
		{"a useless Retry-After does not", good("RateLimit", `"default";r=0;t=9000`, "Retry-After", "0"), HintRateLimit, 9000 * time.Second},
		{"host cool-down", held(good(), 3*time.Hour, HintHostCooldown), HintHostCooldown, 3 * time.Hour},
		{"a pause before the floor", held(good(), time.Second, HintURLCooldown), HintDefault, time.Hour},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := validated(Hints{}).Update(test.answer, nil, false)
			h.Unheeded = 0
			check(t, Decide(DefaultRules(), h, test.answer, 0), test.winner, test.wait)
		})
	}
}

func TestGone(t *testing.T) {
	a := failed(FailureGone, 410, "Retry-After", "60")
	d := Decide(DefaultRules(), validated(Hints{TTL: ptr(60)}).Update(a, nil, false), a, 0)
	if !d.Next.Equal(Never) || d.Winner != HintGone || d.Interval <= 0 {
		t.Errorf("after a 410 the next poll is at %v by %s (%v)", d.Next, d.Winner, d.Interval)
	}
}

// A redirect that has to wait has not failed. It is tried again when it may be followed, min_interval after this poll at
// the earliest.
func TestHeldIsNoFailure(t *testing.T) {
	a := failed(FailureHeld, 302)
	h := History{Validated: true, Failures: 3, Hints: Hints{TTL: ptr(120)}}.Update(a, nil, false)
	check(t, Decide(DefaultRules(), h, a, 0), HintFloor, time.Hour)
	a.HeldFor = 5 * time.Hour
	check(t, Decide(DefaultRules(), h, a, 0), HintRedirect, 5*time.Hour)
}

// A feed that points to another one is looked at once in max_interval, as long as that one works.
func TestPointing(t *testing.T) {
	for _, pointing := range []bool{true, false} {
		a := failed(FailureMoved, 301)
		a.Pointing = pointing
		h := History{Validated: true, Failures: 3, Hints: Hints{TTL: ptr(120)}}.Update(a, nil, false)
		if d := Decide(DefaultRules(), h, a, 0); pointing {
			check(t, d, HintMoved, 24*time.Hour)
		} else {
			check(t, d, HintMoved, 2*time.Hour)
		}
	}
}

// A refusal that names no time stands for an hour, and for twice as long with each further one, a day at most.
func TestBareRefusals(t *testing.T) {
	h, a := validated(Hints{}), failed(FailureRateLimited, 429)
	h.Interval = time.Minute
	rules := DefaultRules()
	rules.MinInterval = time.Minute
	for _, hours := range []int{1, 2, 4, 8, 16, 24, 24} {
		h = h.Update(a, nil, false)
		check(t, Decide(rules, h, a, 0), HintURLCooldown, time.Duration(hours)*time.Hour)
	}
}

func TestTimesAreUTC(t *testing.T) {
	d := Decide(DefaultRules(), History{}, Answer{At: noon.In(time.FixedZone("", 3600)), Failure: FailureDNS}, 0)
	if !d.At.Equal(noon) || d.At.Location() != time.UTC || d.Next.Location() != time.UTC {
		t.Errorf("counted from %v to %v, want from %v, both UTC", d.At, d.Next, noon)
	}
}

// The record is what people are shown: every term, in the order of the rules.
func TestRecord(t *testing.T) {
	a := good("Cache-Control", "max-age=900", "Retry-After", "abc")
	h := after(a, Document{
		Hints:     Hints{TTL: ptr(180), SyPeriod: "hourly", SkipHours: []int{15}},
		Malformed: []Term{{Hint: HintSkipDays, Raw: "Fantabuday", Note: "no day"}},
	})
	d := Decide(DefaultRules(), h, a, 0.5)
	var order []string
	for _, term := range d.Considered {
		mark := ""
		if term.Used {
			mark = "!"
		}
		order = append(order, term.Hint+mark)
	}
	want := "max-age ttl! sy floor cap jitter! skip-hours! retry-after skip-days"
	if got := strings.Join(order, " "); got != want {
		t.Errorf("recorded %s, want %s", got, want)
	}
	if term, _ := find(d, HintSkipHours); term.Seconds != int64(d.Interval/time.Second) || term.Raw != "15" {
		t.Errorf("the winner is recorded as %+v of %v", term, d.Interval)
	}
	if term, _ := find(d, HintTTL); term.Seconds != 10800 || term.Raw != "180" {
		t.Errorf("ttl is recorded as %+v", term)
	}
	if d.Base != 3*time.Hour {
		t.Errorf("the base is %v, want the ttl", d.Base)
	}
}

// A foreign field of any size and content ends up short and printable in a record.
func TestRecordOfHugeFields(t *testing.T) {
	a := good("Cache-Control", strings.Repeat("\xff", 1<<20)+", max-age=7200", "Retry-After", strings.Repeat("9", 1<<20))
	for _, term := range Decide(DefaultRules(), after(a, Document{}), a, 0).Considered {
		if len(term.Raw) > 4*maxRaw || strings.Contains(term.Raw, "\xff") {
			t.Errorf("%s has a raw value of %d bytes", term.Hint, len(term.Raw))
		}
	}
}

// A poll of which nothing was sent is tried again soon, whatever kept it back.
func TestUnsentIsTriedAgainSoon(t *testing.T) {
	for _, failure := range []Failure{FailureAddress, FailureDNS, FailureConnect, FailureTimeout} {
		h := History{Failures: 5, Answered: true, Interval: 12 * time.Hour}
		a := Answer{At: noon, Failure: failure}
		for n, want := range []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute} {
			h = h.Update(a, nil, false)
			if d := Decide(DefaultRules(), h, a, 0); d.Interval != want || d.Winner != HintUnsent {
				t.Errorf("%s, %d times: %v by %s, want %v", failure, n+1, d.Interval, d.Winner, want)
			}
		}
		if d := Decide(DefaultRules(), h, a, 0.5); d.Interval != 10*time.Minute+30*time.Second {
			t.Errorf("with jitter: %v, want 10m30s", d.Interval)
		}
		a.Asked = noon.Add(-time.Second) // a redirect led there: its origin has been asked
		if d := Decide(DefaultRules(), h, a, 0); d.Winner != HintBackOff {
			t.Errorf("%s after a request: %v by %s, want a back-off", failure, d.Interval, d.Winner)
		}
	}
	short := DefaultRules()
	short.MinInterval, short.MaxInterval = time.Second, 10*time.Second
	check(t, Decide(short, History{}, Answer{At: noon, Failure: FailureDNS}, 0), HintUnsent, 10*time.Second)
}
