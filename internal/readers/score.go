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
//	validators  at least three unknown ones, in more than 10 % of conditional requests
//	            15; outdated ones in most conditional requests 10
//	skip hours  at least three requests and more than 10 % of all: 10, or 5 if most
//	            GETs are conditional
//	name        no User-Agent 10, that of a library 5
//	methods     more than a quarter HEAD 5; more than 10 % neither GET nor HEAD 10
//
// Publishers ask for an hour between conditional polls and a day between unconditional
// ones (rachelbythebay.com/w/feed). Occasional unconditional requests, as AntennaPod
// sends them, cost nothing.
//
// A reader with fewer than ten polls, or fewer than eight repeated ones, has no score.
const (
	minPolls   = 10
	minRepeats = 8
	unscored   = "-"
)

const (
	politeGap  = time.Hour       // between polls
	fastestGap = 5 * time.Minute // the least politeGap of a feed that changes more often
	wholeGap   = 20 * time.Hour  // between unconditional polls: a day, less the variation of a daily poll
	reasonsMax = 3
)

// finding is one reason for which a reader loses points.
type finding struct {
	cost   int
	reason string
}

// score returns the grade of c and the reasons. feed has the counters of all readers of
// the feed that c polls most.
func (c *conduct) score(about About, feed *counters) (grade string, reasons []string) {
	if c.polls < minPolls || c.repeats() < minRepeats {
		return unscored, []string{"too few requests"}
	}
	points := 100
	findings := []finding{
		c.pace(about), c.wholes(), c.compression(feed), c.obedience(), c.validators(about),
		c.skipping(), c.name(), c.methods(),
	}
	slices.SortStableFunc(findings, func(a, b finding) int { return cmp.Compare(b.cost, a.cost) })
	reasons = []string{}
	for _, f := range findings {
		points -= f.cost
		if f.cost > 0 && len(reasons) < reasonsMax {
			reasons = append(reasons, f.reason)
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, fmt.Sprintf("%s, %s of its requests conditional", c.asks(), percentOf(c.valid(), c.gets)))
	}
	return letter(points), reasons
}

func letter(points int) string {
	for i, least := range [...]int{90, 75, 60, 45, 30} {
		if points >= least {
			return string(rune('A' + i))
		}
	}
	return "F"
}

func (c *conduct) pace(about About) finding {
	base := politeGap
	if about.Changes > 0 {
		base = max(min(about.Changes, politeGap), fastestGap)
	}
	reason := c.asks()
	if about.Changes > 0 && c.feeds == 1 {
		reason += "; the feed changes " + status.Frequency(about.Changes)
	}
	return finding{steps(float64(base)/float64(max(c.gap(), time.Second)), 1/0.9, 2, 4, 10), reason}
}

// steps returns 10 points for each threshold that a value exceeds.
func steps(value float64, thresholds ...float64) int {
	cost := 0
	for _, t := range thresholds {
		if value > t {
			cost += 10
		}
	}
	return cost
}

// asks describes a reader's pace.
func (c *conduct) asks() string {
	gap := max(c.gap(), time.Second)
	if gap > 10*time.Minute {
		gap = gap.Round(time.Minute) // it is an estimate
	}
	often := status.Frequency(gap)
	switch n := c.networkSketch().count(); {
	case c.judged == c.feeds:
		return "asks " + often
	case c.main.together():
		return fmt.Sprintf("asks %s from each of %d networks", often, max(n, 2))
	}
	return fmt.Sprintf("asks %s, each of about %d readers", often, c.judged)
}

func (c *conduct) wholes() finding {
	again := max(c.whole-c.judged, 0)
	cost := steps(float64(again)/float64(c.repeats()), 0.25, 0.5, 0.95-1e-9)
	switch every := c.every(again); {
	case every >= wholeGap:
		cost = 0
	case every >= 8*time.Hour:
		cost /= 2
	case every < 2*time.Hour:
		cost += cost / 3
	}
	switch share := float64(c.valid()) / float64(max(c.gets, 1)); {
	case c.valid() == 0:
		return finding{cost, "never sends a conditional request"}
	case share < 0.05:
		return finding{cost, "hardly ever sends a conditional request"}
	}
	return finding{cost, fmt.Sprintf("only %s of its requests are conditional", percentOf(c.valid(), c.gets))}
}

// valid returns the number of conditional GETs whose validators are not unknown.
func (c *conduct) valid() int64 { return c.gets - c.whole }

func (c *conduct) compression(feed *counters) finding {
	share := float64(c.identity) / float64(max(c.gets, 1))
	f := finding{0, "refuses compression"}
	switch {
	case share > 0.5:
		f.cost = 25
	case share > 0.1:
		f.cost = 10
		f.reason += fmt.Sprintf(" in %s of its requests", percentOf(c.identity, c.gets))
	}
	if feed != nil && feed.packed.count > 0 && feed.plain.count > 0 {
		plain := float64(feed.plain.bytes) / float64(feed.plain.count)
		packed := float64(feed.packed.bytes) / float64(feed.packed.count)
		if times := plain / max(packed, 1); times >= 1.5 {
			f.reason += fmt.Sprintf(": %.0f times the bytes", times)
		}
	}
	return f
}

func (c *conduct) obedience() finding {
	f := finding{0, fmt.Sprintf("ignores 429: asked %d times before the wait was over", c.early)}
	switch {
	case c.early < 3:
	case 2*c.early >= c.limited:
		f.cost = 25
	case 10*c.early >= c.limited:
		f.cost = 10
	}
	return f
}

func (c *conduct) validators(about About) finding {
	if c.unknown >= 3 && 10*c.unknown > c.conditional {
		return finding{15, fmt.Sprintf("invents validators: the feed never gave %s of them", percentOf(c.unknown, c.conditional))}
	}
	// A new version makes the validators of all readers outdated once. So outdated ones
	// count only if the feed changes much less often than the reader polls.
	if c.earlier >= 5 && 2*c.earlier > c.conditional && about.Changes > 4*c.gap() {
		return finding{10, "goes on sending validators of an old version"}
	}
	return finding{}
}

func (c *conduct) skipping() finding {
	f := finding{0, fmt.Sprintf("asks in the hours that the feed rules out (%s of its requests)", percentOf(c.skipped, c.requests))}
	if c.skipped >= 3 && 10*c.skipped > c.requests {
		f.cost = 10
		if 2*c.valid() > c.gets {
			f.cost = 5
		}
	}
	return f
}

func (c *conduct) name() finding {
	switch c.agent.Kind {
	case KindNone:
		return finding{10, "does not say who it is"}
	case KindLibrary:
		return finding{5, "gives only the name of its HTTP library"}
	}
	return finding{}
}

func (c *conduct) methods() finding {
	others := c.requests - c.gets - c.heads
	switch {
	case 10*others > c.requests:
		return finding{10, "sends requests other than GET and HEAD"}
	case 4*c.heads > c.requests && c.gets > 0:
		return finding{5, "sends a HEAD before it asks for the feed"}
	}
	return finding{}
}

func percentOf(part, whole int64) string {
	return status.Percent(float64(part) / float64(max(whole, 1)))
}
