// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestMedianGap(t *testing.T) {
	for _, tc := range []struct {
		name    string
		seconds []int64
		want    int64
	}{
		{"none", nil, 0},
		{"one", []int64{3600}, 3600},
		{"regular", slices.Repeat([]int64{3601}, 99), 3601},
		{"longer than any bound", []int64{9e6, 9e6}, 9e6},
		{"very short", []int64{5, 5, 5}, 5},
	} {
		var g gaps
		for _, s := range tc.seconds {
			g.add(time.Duration(s) * time.Second)
		}
		if got := g.median(); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestMedianGapIsGoodToATenth(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, mean := range []float64{60, 246, 900, 3600, 14_400, 86_400, 604_800} {
		var g, half gaps
		var all []int64
		for i := range 500 {
			s := int64(mean*0.3 + rnd.ExpFloat64()*mean*0.7)
			all = append(all, s)
			if i%2 == 0 {
				half.add(time.Duration(s) * time.Second)
			} else {
				g.add(time.Duration(s) * time.Second)
			}
		}
		g.merge(&half)
		slices.Sort(all)
		exact := float64(all[250])
		if got := float64(g.median()); math.Abs(got-exact) > exact/10 {
			t.Errorf("mean %.0f s: median %.0f s, exactly %.0f s", mean, got, exact)
		}
	}
}
