// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/status"
)

// Sentence describes the readers.
func (r Readers) Sentence() string {
	if r.Requests == 0 {
		return "No reader has asked for a feed yet."
	}
	text := status.Count(r.Readers, "reader") + ", " + status.Count(r.Requests, "request") + ", " + size(r.Bytes) + "."
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
		text += "; " + status.Plural(r.Unconditional, "it takes ", "they take ") + percent(float64(r.UnconditionalBytes)/float64(r.Bytes)) + " of the bytes"
	}
	return text + "."
}

// Sentence describes what was spared.
func (s Savings) Sentence() string {
	if s.Total.Requests == 0 {
		return "No reader has asked for a feed yet."
	}
	return fmt.Sprintf("Sites were spared %s and %s in %s.",
		status.Count(s.Total.Spared(), "request"), size(s.Total.SparedBytes()), status.Count(int64(max(len(s.Days), 1)), "day"))
}

// size writes a number of bytes: "96 GB".
func size(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// short writes a number for the side of a chart: "25k".
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

// took writes how long a poll took: "340 ms".
func took(s status.Seconds) string {
	d := time.Duration(s)
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
