// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/status"
)

// The scores are A (from 90 points), B (75), C (60), D (45), E (30) and F. A reader begins
// with 100 points and loses points for:
//
//	pace        polls too often. The limit is an hour, or the time between changes of the
//	            feed if that is shorter, but at least 5 minutes. A gap below 90 % of it
//	            costs 10 points, below a half 20, a quarter 30, a tenth 40
//	whole       repeated requests for the whole feed, without valid conditions: more than
//	            25 % of polls 10, 50 % 20, 95 % 30. It costs half if they are at least
//	            8 h apart, nothing from 20 h, and a third more below 2 h
//	compression not accepted in more than 10 % of requests 10, 50 % 25
//	429         at least three requests before the wait was over: for 10 % of all 429
//	            10, for half of them 25
//	validators  at least three unknown ones, in more than 10 % of conditional requests 15
//	skip hours  at least three requests and more than 10 % of all: 10, or 5 if most
//	            GETs are conditional
//	name        no User-Agent 10, that of a library 5
//
// Publishers ask for an hour between conditional polls and a day between unconditional
// ones (rachelbythebay.com/w/feed). Occasional unconditional requests, as AntennaPod
// sends them, cost nothing.
//
// A reader with fewer than ten polls, or fewer than eight repeated ones, has no score. For
// people, docs/defend.md and the page of readers say this in short, and polls are visits.
const (
	minPolls   = 10
	minRepeats = 8
	noScore    = "-"
)

const (
	minGap     = time.Hour       // between polls
	fastestGap = 5 * time.Minute // the least gap of a feed that changes more often
	wholeGap   = 20 * time.Hour  // between unconditional polls: a day, less the variation of a daily poll
	reasonsMax = 3
)

// group is what a score is about: the requests of a reader or family for one or more
// feeds, and how many readers they are taken to come from.
type group struct {
	Counters
	feeds  int64
	judged int64         // readers, summed over feeds
	span   time.Duration // the time between first and last request, summed over these readers
	main   *Counters     // of the feed with the most polls
}

func (c *group) add(o *Counters) {
	n := o.judgedAs()
	c.feeds++
	c.judged += n
	c.span += time.Duration(n) * o.Last.Sub(o.First)
	if c.main == nil || o.Polls > c.main.Polls || o.Polls == c.main.Polls && o.Feed < c.main.Feed {
		c.main = o
	}
	c.merge(o)
}

// judgedAs returns how many readers the requests are taken to come from. Usually each
// User-Agent at each full address is a reader, so that people who share an address or
// a provider are not scored as one fast reader. The addresses of one network count as
// one reader if they seem to be the machines of one operator.
func (c *Counters) judgedAs() int64 {
	n := sketch(c.Clients[:]).count()
	if c.oneOperator() {
		n = min(n, sketch(c.Nets[:]).count())
	}
	n += n / 4 // twice the standard error of the estimate, in favour of the reader
	return max(1, min(n, c.Polls))
}

// oneOperator reports whether the requests seem to come from one operator's machines: the
// User-Agent declares subscribers, or it names neither a person's system nor a common
// library and hardly any request is conditional.
func (c *Counters) oneOperator() bool {
	hosted := c.agent.Kind == KindService || c.agent.Kind == KindNone
	return c.Subscribers > 0 || hosted && c.Methods.Get > 0 && c.Conditional*8 < c.Methods.Get
}

// repeats returns the number of polls without the first one of each reader.
func (c *group) repeats() int64 { return c.Polls - c.judged }

// gap returns the time between two polls of a reader: the median for one reader, the
// average for several, whose polls are mixed.
func (c *group) gap() time.Duration {
	if c.judged == c.feeds {
		return max(time.Duration(c.Gaps.median())*time.Second, time.Second)
	}
	return max(c.every(c.repeats()), time.Second)
}

// every returns the average time between events of a reader.
func (c *group) every(events int64) time.Duration {
	return c.span / time.Duration(max(events, 1))
}

// valid returns the number of conditional GETs whose validators are not unknown.
func (c *group) valid() int64 { return c.Methods.Get - c.Whole }

// finding is one reason for which a reader loses points.
type finding struct {
	cost   int
	reason string
}

// score returns the grade of c and the reasons that matter most.
func (c *group) score(changes time.Duration) (grade string, reasons []string) {
	if needed := max(minPolls, c.judged+minRepeats); c.Polls < needed {
		return noScore, []string{fmt.Sprintf("not judged yet (%d of %s)", c.Polls, status.Count(needed, "visit"))}
	}
	findings := append([]finding{c.pace(changes), c.wholes()}, c.requestFindings()...)
	slices.SortStableFunc(findings, func(a, b finding) int { return cmp.Compare(b.cost, a.cost) })
	points := 100
	for _, f := range findings {
		points -= f.cost
		if f.cost > 0 && len(reasons) < reasonsMax {
			reasons = append(reasons, f.reason)
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, fmt.Sprintf("%s, %s of its requests conditional", c.asks(), status.Percent(share(c.valid(), c.Methods.Get))))
	}
	for i, least := range [...]int{90, 75, 60, 45, 30} {
		if points >= least {
			return string(rune('A' + i)), reasons
		}
	}
	return "F", reasons
}

func (c *group) pace(changes time.Duration) finding {
	base := minGap
	if changes > 0 {
		base = max(min(changes, minGap), fastestGap)
	}
	reason := c.asks()
	if changes > 0 && c.feeds == 1 {
		reason += "; the feed changes " + status.Frequency(changes)
	}
	return finding{steps(float64(base)/float64(c.gap()), 1/0.9, 2, 4, 10), reason}
}

// steps returns 10 points for each threshold that a value exceeds.
func steps(value float64, thresholds ...float64) (cost int) {
	for _, t := range thresholds {
		if value > t {
			cost += 10
		}
	}
	return cost
}

// asks describes a reader's pace.
func (c *group) asks() string {
	gap := c.gap()
	if gap > 10*time.Minute {
		gap = gap.Round(time.Minute) // it is an estimate
	}
	often := status.Frequency(gap)
	switch {
	case c.judged == c.feeds:
		return "asks " + often
	case c.main.oneOperator():
		return fmt.Sprintf("asks %s from each of %d networks", often, max(sketch(c.Nets[:]).count(), 2))
	}
	// judged counts a reader once for each of its feeds.
	return fmt.Sprintf("asks %s, each of about %d readers", often, max(2, (c.judged+c.feeds/2)/max(c.feeds, 1)))
}

func (c *group) wholes() finding {
	again := max(c.Whole-c.judged, 0)
	cost := steps(share(again, c.repeats()), 0.25, 0.5, 0.95-1e-9)
	switch every := c.every(again); {
	case every >= wholeGap:
		cost = 0
	case every >= 8*time.Hour:
		cost /= 2
	case every < 2*time.Hour:
		cost += cost / 3
	}
	switch valid := share(c.valid(), c.Methods.Get); {
	case valid == 0:
		return finding{cost, "never sends a conditional request"}
	case valid < 0.05:
		return finding{cost, "hardly ever sends a conditional request"}
	default:
		return finding{cost, fmt.Sprintf("only %s of its requests are conditional", status.Percent(valid))}
	}
}

// requestFindings returns the findings that do not depend on time.
func (c *group) requestFindings() (f []finding) {
	add := func(found bool, cost int, reason string, values ...any) {
		if found {
			f = append(f, finding{cost, fmt.Sprintf(reason, values...)})
		}
	}
	plain := share(c.Identity, c.Methods.Get)
	add(plain > 0.5, 25, "refuses compression")
	add(plain > 0.1 && plain <= 0.5, 10, "refuses compression in %s of its requests", status.Percent(plain))
	early := 10
	if 2*c.Early >= c.Answers.Limited {
		early = 25
	}
	add(c.Early >= 3 && 10*c.Early >= c.Answers.Limited, early, "ignores 429: asked %d times before the wait was over", c.Early)
	unknown := share(c.Conditions.Unknown, c.Conditional)
	add(c.Conditions.Unknown >= 3 && unknown > 0.1, 15, "invents validators: the feed never gave %s of them", status.Percent(unknown))
	skip, cost := share(c.InSkipHours, c.Requests), 10
	if 2*c.valid() > c.Methods.Get {
		cost = 5
	}
	add(c.InSkipHours >= 3 && skip > 0.1, cost, "asks in the hours that the feed rules out (%s of its requests)", status.Percent(skip))
	add(c.agent.Kind == KindNone, 10, "does not say who it is")
	add(c.agent.Kind == KindLibrary, 5, "gives only the name of its HTTP library")
	return f
}
