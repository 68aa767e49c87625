// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/feedpollard/pollard/internal/status"
)

// bars shows a feed's last polls: a tall bar brought a new version, taller with its bytes; a dot
// found nothing new; a cross failed. It is SVG of numbers and of words of ours alone, which is why
// it may be template.HTML; the stylesheet colours it.
func bars(polls []status.Poll) template.HTML {
	const places, step, height = 32, 5, 20
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
			h := 8 + int((height-10)*p.Bytes/largest)
			fmt.Fprintf(&fresh, "M%d %dh3v%dh-3z", x, height-h, h)
		case status.ResultUnchanged, status.ResultMoved:
			counts[1]++
			fmt.Fprintf(&same, "M%d %dh3v3h-3z", x, height-3)
		default:
			counts[2]++
			fmt.Fprintf(&failed, "M%d %dl4 4m0-4l-4 4", x, height-9)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="polls" viewBox="0 0 %d %d" role="img" aria-label="%s: %d new, %d unchanged, %d failed">`,
		places*step, height, status.Capitalize(status.Last(polls)), counts[0], counts[1], counts[2])
	for _, bars := range []struct{ class, path string }{{"grid", fmt.Sprintf("M0 %d.5h%d", height-1, places*step)}, {"new", fresh.String()}, {"same", same.String()}, {"failed", failed.String()}} {
		if bars.path != "" {
			b.WriteString(`<path class="` + bars.class + `" d="` + bars.path + `"/>`)
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String())
}
