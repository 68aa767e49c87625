// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/feedpollard/pollard/internal/status"
)

// The pictures are SVG in the page. They are made of numbers and of words of ours
// alone, which is why they may be template.HTML; the stylesheet colours them.

// bars shows a feed's last polls: a tall bar brought a new version, taller with its bytes; a dot
// found nothing new; a cross failed.
func bars(polls []status.Poll) template.HTML { return picture(polls, 20, "") }

// pollsChart shows the last polls like bars, with the times of the first and the last one.
func pollsChart(polls []status.Poll) template.HTML {
	if len(polls) == 0 {
		return ""
	}
	polls, now := polls[max(len(polls)-places, 0):], time.Now()
	first, last := status.Ago(polls[0].At, now), status.Ago(polls[len(polls)-1].At, now)
	axis := `<text x="160" y="26" text-anchor="end">` + last + "</text>"
	switch begin := (places - len(polls)) * step; {
	case first == last:
	case len(polls) < places/2: // there is room to the left of the bar
		axis += fmt.Sprintf(`<text x="%d" y="18" text-anchor="end">%s</text>`, begin-2, first)
	default:
		axis += fmt.Sprintf(`<text x="%d" y="26">%s</text>`, begin, first)
	}
	return picture(polls, 28, axis)
}

// Pictures of polls have a number of places for bars, a step apart.
const places, step = 32, 5

func picture(polls []status.Poll, height int, axis string) template.HTML {
	const base = 20
	if len(polls) == 0 {
		return ""
	}
	polls = polls[max(len(polls)-places, 0):]
	var largest int64 = 1
	for _, p := range polls {
		if p.Result == status.ResultNew {
			largest = max(largest, p.Bytes)
		}
	}
	var fresh, same, failed strings.Builder
	var counts [3]int
	for i, p := range polls {
		x := (places-len(polls)+i)*step + 1
		switch p.Result {
		case status.ResultNew:
			counts[0]++
			h := 8 + int((base-10)*p.Bytes/largest)
			fmt.Fprintf(&fresh, "M%d %dh3v%dh-3z", x, base-h, h)
		case status.ResultUnchanged, status.ResultMoved:
			counts[1]++
			fmt.Fprintf(&same, "M%d %dh3v3h-3z", x, base-3)
		default:
			counts[2]++
			fmt.Fprintf(&failed, "M%d %dl4 4m0-4l-4 4", x, base-9)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="polls" viewBox="0 0 %d %d" role="img" aria-label="%s: %d new, %d unchanged, %d failed">`,
		places*step, height, status.Capitalize(status.Last(polls)), counts[0], counts[1], counts[2])
	for _, bars := range []struct{ class, path string }{{"grid", fmt.Sprintf("M0 %d.5h%d", base-1, places*step)}, {"new", fresh.String()}, {"same", same.String()}, {"failed", failed.String()}} {
		if bars.path != "" {
			b.WriteString(`<path class="` + bars.class + `" d="` + bars.path + `"/>`)
		}
	}
	b.WriteString(axis + "</svg>")
	return template.HTML(b.String())
}

// column is one column of a chart: parts of a whole, from the bottom up.
type column struct {
	label       string // below; empty: none
	title       string // on pointing at it
	lower, rest int64
}

// roundUp is the next number above n that is easy to read: 1, 2 or 5 and zeros.
func roundUp(n int64) int64 {
	for step := int64(2); ; step *= 10 {
		for _, round := range []int64{step, step / 2 * 5, step * 5} {
			if round >= n || round > math.MaxInt64/100 {
				return round
			}
		}
	}
}

// chart shows columns. The label says what they are; a page that has a chart has its
// figures in a table too.
func chart(label string, columns []column) template.HTML {
	const width, height, base, left, widest = 720, 180, 150, 56, 72
	if len(columns) == 0 {
		return ""
	}
	var most int64 = 1
	for _, c := range columns {
		most = max(most, c.lower+c.rest)
	}
	most = roundUp(most)
	step := min(float64(width-left)/float64(len(columns)), widest) // so that the first days of a gateway are not broad blocks
	thick := max(step*0.72, 1)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="chart" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, template.HTMLEscapeString(label))
	for _, line := range []int64{0, most / 2, most} {
		y := base - int(float64(base-14)*float64(line)/float64(most))
		fmt.Fprintf(&b, `<path class="grid" d="M%d %d.5H%d"/><text class="side" x="%d" y="%d">%s</text>`, left, y, width, left-8, y+4, template.HTMLEscapeString(short(line)))
	}
	for i, c := range columns {
		x := float64(left) + step*float64(i) + (step-thick)/2
		b.WriteString("<g><title>" + template.HTMLEscapeString(c.title) + "</title>")
		y := float64(base)
		for _, part := range []struct {
			class string
			n     int64
		}{{"lower", c.lower}, {"rest", c.rest}} {
			if part.n <= 0 {
				continue
			}
			h := max(float64(base-14)*float64(part.n)/float64(most), 1)
			y -= h
			fmt.Fprintf(&b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`, part.class, x, y, thick, h)
		}
		b.WriteString("</g>")
		if c.label != "" {
			fmt.Fprintf(&b, `<text x="%.1f" y="%d">%s</text>`, x+thick/2, base+20, template.HTMLEscapeString(c.label))
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}

// short writes a number for the side of a chart: "25k".
func short(n int64) string {
	value, unit := humanize.ComputeSI(float64(n))
	return humanize.Ftoa(value) + unit
}
