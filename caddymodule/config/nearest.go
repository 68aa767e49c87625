// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package config

// nearest returns the name that is most similar to a mistyped one, or "" if none is
// similar enough.
func nearest(wrong string, names []string) (match string) {
	best := max(1, len(wrong)/3) + 1
	for _, name := range names {
		if d := distance(wrong, name); d < best {
			match, best = name, d
		}
	}
	return match
}

// distance returns how many letters must be added, removed, changed or swapped with
// their neighbour to turn one word into another (the optimal string alignment distance).
func distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		older := before
		before, row = row, make([]int, len(b)+1)
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(before[j+1]+1, row[j]+1, before[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], older[j-1]+1)
			}
		}
	}
	return row[len(b)]
}
