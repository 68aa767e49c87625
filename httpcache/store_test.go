// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package httpcache

import (
	"strconv"
	"strings"
	"testing"
)

// TestMemoryIsBounded fills a small cache with small answers, lets all of them grow,
// and looks at what it holds.
func TestMemoryIsBounded(t *testing.T) {
	bubbleOf(t, 200_000, func(t *testing.T, b *bench) {
		for _, size := range []int{10, 10_000} {
			b.origin(says(200, strings.Repeat("x", size), "Cache-Control: max-age=60"))
			for i := range 100 {
				b.serve(request("POST", "/"+strconv.Itoa(i))) // forget it
				b.serve(request("GET", "/"+strconv.Itoa(i), "Foo: "+strconv.Itoa(size)))
			}
		}
		// The same keys grow by one variant after the other.
		b.origin(says(200, strings.Repeat("x", 10_000), "Cache-Control: max-age=60", "Vary: Foo"))
		for variant := range 5 {
			for i := range 100 {
				b.serve(request("GET", "/v"+strconv.Itoa(i), "Foo: "+strconv.Itoa(variant)))
			}
		}
		held := int64(0)
		b.cache.store.cache.IterValues(func(v *resource) bool {
			held += v.cost()
			return false
		})
		if held == 0 || held > 200_000 {
			t.Errorf("%d bytes are held, of at most 200000", held)
		}
	})
}
