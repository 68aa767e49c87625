// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"sort"
	"time"

	"github.com/feedpollard/pollard/internal/status"
)

// gapBounds are the bounds of the histogram of gaps between polls, in seconds. Bucket i
// has the gaps from bound i-1 to below bound i. Buckets of common gaps are narrow, so
// that the error of a median is about a tenth. Common settings such as 15 minutes, an
// hour and a day are bounds.
var gapBounds = [...]int64{
	5, 10, 15, 20, 30, 45, 60, 75, 90, 120, 150, 180, 240, 300, 360, 420, 480, 600, 720, 900,
	1080, 1200, 1500, 1800, 2100, 2400, 2700, 3000, 3300, 3600, 3900, 4500, 5400, 6300, 7200,
	9000, 10800, 12600, 14400, 16200, 18000, 21600, 25200, 28800, 36000, 43200, 50400, 64800,
	79200, 86400, 90000, 108000, 129600, 172800, 259200, 345600, 518400, 604800, 691200,
	1209600, 2592000,
}

// gaps is a histogram of the time between polls.
type gaps struct {
	counts    [len(gapBounds) + 1]uint32
	total     int64
	low, high int64 // the shortest and the longest, in seconds
}

func (g *gaps) add(gap time.Duration) {
	seconds := int64(gap / time.Second)
	g.counts[sort.Search(len(gapBounds), func(i int) bool { return seconds < gapBounds[i] })]++
	if g.total == 0 || seconds < g.low {
		g.low = seconds
	}
	g.high = max(g.high, seconds)
	g.total++
}

func (g *gaps) merge(o *gaps) {
	if o.total == 0 {
		return
	}
	if g.total == 0 || o.low < g.low {
		g.low = o.low
	}
	g.high = max(g.high, o.high)
	g.total += o.total
	for i, n := range o.counts {
		g.counts[i] += n
	}
}

// median estimates the median gap in seconds, as if the gaps of a bucket were spread
// evenly over it. It returns 0 if no gap was counted.
func (g *gaps) median() int64 {
	below := int64(0)
	for i, n := range g.counts {
		if n == 0 || 2*(below+int64(n)) < g.total {
			below += int64(n)
			continue
		}
		from, to := g.bucket(i)
		within := (float64(g.total)/2 - float64(below)) / float64(n)
		return min(max(from+int64(within*float64(to-from)), g.low), g.high)
	}
	return 0
}

// bucket returns the range of a bucket in seconds, limited to the shortest and the
// longest gap.
func (g *gaps) bucket(i int) (from, to int64) {
	to = g.high
	if i > 0 {
		from = gapBounds[i-1]
	}
	if i < len(gapBounds) {
		to = gapBounds[i]
	}
	return max(from, g.low), min(to, max(g.high, from))
}

// list returns the histogram without its empty buckets, shortest gaps first.
func (g *gaps) list() []status.Gap {
	list := []status.Gap{}
	for i, n := range g.counts {
		if n == 0 {
			continue
		}
		gap := status.Gap{Count: int64(n)}
		if i > 0 {
			gap.From = gapBounds[i-1]
		}
		if i < len(gapBounds) {
			gap.Below = gapBounds[i]
		}
		list = append(list, gap)
	}
	return list
}
