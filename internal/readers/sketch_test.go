// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestSketch(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 10, 60, 180, 1000, 50_000} {
		worst, sum := 0.0, 0.0
		for trial := range uint64(40) {
			a, b := make(sketch, 16), make(sketch, 16)
			rnd := rand.New(rand.NewPCG(trial, 7))
			for i := range n {
				h := rnd.Uint64()
				for range 3 { // seen often, counted once
					a.add(h)
				}
				if i%2 == 0 {
					b.add(h)
				}
			}
			a.merge(b)
			got := float64(a.count())
			if n <= 1 && got != float64(n) {
				t.Fatalf("%d are %v", n, got)
			}
			worst = max(worst, math.Abs(got-float64(n)))
			sum += got
		}
		if mean := sum / 40; math.Abs(mean-float64(n)) > 0.1*float64(n) || worst > 0.5*float64(n)+1 {
			t.Errorf("%d are %.1f on average, wrong by %.0f at worst", n, mean, worst)
		}
	}
}
