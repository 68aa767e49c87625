// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// stateCount is how many feeds are in a state.
type stateCount struct {
	State State
	Count int64
}

// counts are the states that feeds are in, in the order in which they are told.
func (s Summary) counts() []stateCount {
	var list []stateCount
	for _, state := range states {
		if n := s.Feeds[state]; n > 0 {
			list = append(list, stateCount{state, n})
		}
	}
	return list
}

// Sentence tells the state of the whole: "214 feeds. 209 are fresh, 3 are waiting as
// their sites asked, 2 are failing."
func (s Summary) Sentence() string {
	var total int64
	var parts []string
	for _, c := range s.counts() {
		if c.State == StateNoFeed {
			continue
		}
		total += c.Count
		are := "are"
		if c.Count == 1 {
			are = "is"
		}
		text := fmt.Sprintf("%s %s %s", humanize.Comma(c.Count), are, c.State)
		switch c.State {
		case StateWaiting:
			text += " as asked"
		case StateGone:
			text += " for good"
		case StateCold:
			text = humanize.Comma(c.Count) + plural(c.Count, " has", " have") + " not answered yet"
		}
		parts = append(parts, text)
	}
	switch {
	case total == 0:
		return "No feeds yet."
	case len(parts) == 1 && s.Feeds[StateFresh] == total:
		return counted(total, "feed") + ", all fresh."
	}
	return counted(total, "feed") + ". " + capital(strings.Join(parts, ", ")) + "."
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Sentence tells what stands out of the readers.
func (r Readers) Sentence() string {
	if r.Requests == 0 {
		return "Nobody has asked for a feed yet."
	}
	text := counted(r.Readers, "reader") + ", " + counted(r.Requests, "request") + ", " + size(r.Bytes) + "."
	switch {
	case r.Unconditional > 0:
	case r.Judged == 0:
		return text
	case r.Judged < r.Readers:
		return text + " All who ask regularly send conditional requests."
	default:
		return text + " All of them send conditional requests."
	}
	text += " " + humanize.Comma(r.Unconditional) + " never "
	if r.Unconditional == 1 {
		text += "sends a conditional request"
	} else {
		text += "send a conditional request"
	}
	if r.Bytes > 0 && r.UnconditionalBytes > 0 {
		text += "; " + plural(r.Unconditional, "it takes ", "they take ") + percent(float64(r.UnconditionalBytes)/float64(r.Bytes)) + " of the bytes"
	}
	return text + "."
}

// Sentence tells what was spared.
func (s Savings) Sentence() string {
	if s.Total.Requests == 0 {
		return "Nobody has asked for a feed yet, so nothing could be spared."
	}
	return fmt.Sprintf("Sites were spared %s and %s in %s.",
		counted(s.Total.Spared(), "request"), size(s.Total.SparedBytes()), counted(int64(max(len(s.Days), 1)), "day"))
}

// Headline tells how it goes on with a feed; its state stands before it.
func (f Feed) Headline() string {
	next := "The next poll is " + in(f.NextPoll) + "."
	switch {
	case f.State == StateGone:
		return "It is not polled any more."
	case f.State == StateNoFeed:
		return "It is no feed."
	case f.NextPoll.IsZero():
		return "No poll is planned."
	case f.State == StateDue, time.Until(f.NextPoll) <= 0:
		return "It is due for a poll."
	case f.State == StateFailing && f.Failures > 1:
		return fmt.Sprintf("The last %d polls failed. ", f.Failures) + next
	case f.State == StateFailing:
		return "The last poll failed. " + next
	case f.State == StateWaiting:
		return "The site has asked for fewer requests. " + next
	case f.State == StateCold:
		return "There is no version yet. " + next
	}
	return next
}

func counted(n int64, noun string) string { return humanize.Comma(n) + " " + plural(n, noun, noun+"s") }

func plural(n int64, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// size tells bytes: "96 GB".
func size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// short tells a number at the side of a chart: "25k".
func short(n int64) string {
	value, unit := humanize.ComputeSI(float64(n))
	return humanize.Ftoa(value) + unit
}

func percent(share float64) string {
	switch p := share * 100; {
	case p > 0 && p < 1:
		return "less than 1 %"
	case p > 99 && p < 100:
		return "more than 99 %"
	default:
		return fmt.Sprintf("%.0f %%", p)
	}
}

// length tells a length of time in the unit that keeps it recognisable: "43 min".
func length(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, -d)
	switch {
	case 0 < d && d < time.Second:
		return fmt.Sprintf("%d ms", max(d.Milliseconds(), 1))
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", d.Round(time.Second)/time.Second)
	case d < 90*time.Minute && d.Round(time.Minute) != time.Hour:
		return fmt.Sprintf("%d min", d.Round(time.Minute)/time.Minute)
	case d < 36*time.Hour:
		return fmt.Sprintf("%d h", d.Round(time.Hour)/time.Hour)
	case d < 730*day:
		return counted(int64(d.Round(day)/day), "day")
	}
	return counted(int64(d/(365*day)), "year")
}

// in describes a time in the future, ago one in the past.
func in(t time.Time) string {
	d := time.Until(t)
	if d <= 0 {
		return "due"
	}
	return "in " + length(d)
}

func ago(t time.Time) string {
	d := time.Since(t)
	if d < 5*time.Second {
		return "just now"
	}
	return length(d) + " ago"
}

// took tells how long a poll took: "340 ms".
func took(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
