// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"sort"
	"time"
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
	Counts [len(gapBounds) + 1]uint32 `json:"counts"`
	Low    int64                      `json:"low"` // the shortest and the longest, in seconds
	High   int64                      `json:"high"`
}

func (g *gaps) add(gap time.Duration) {
	seconds := int64(gap / time.Second)
	one := gaps{Low: seconds, High: seconds}
	one.Counts[sort.Search(len(gapBounds), func(i int) bool { return seconds < gapBounds[i] })]++
	g.merge(&one)
}

func (g *gaps) merge(o *gaps) {
	switch {
	case o.High == 0:
		return
	case g.High == 0:
		g.Low = o.Low
	}
	g.Low, g.High = min(g.Low, o.Low), max(g.High, o.High)
	for i, n := range o.Counts {
		g.Counts[i] += n
	}
}

// median estimates the median gap in seconds, as if the gaps of a bucket were spread
// evenly over it. It returns 0 if no gap was counted.
func (g *gaps) median() int64 {
	var below, total int64
	for _, n := range g.Counts {
		total += int64(n)
	}
	for i, n := range g.Counts {
		if n == 0 || 2*(below+int64(n)) < total {
			below += int64(n)
			continue
		}
		// The bucket's range, limited to the shortest and the longest gap.
		from, to := g.Low, g.High
		if i > 0 {
			from = max(from, gapBounds[i-1])
		}
		if i < len(gapBounds) {
			to = min(to, gapBounds[i])
		}
		within := (float64(total)/2 - float64(below)) / float64(n)
		return min(max(from+int64(within*float64(to-from)), g.Low), g.High)
	}
	return 0
}
