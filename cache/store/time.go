// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math"
	"time"
)

// Time is a moment by the clock of a [Database], in nanoseconds. The clock never goes
// back and cannot be set; a database keeps moments in no other form. It starts
// near the Unix time at which the database was made.
type Time int64

const (
	// Never is the moment of something that has not happened.
	Never Time = math.MinInt64
	// End is the next poll of a feed that is not polled any more.
	End Time = math.MaxInt64
)

// Add returns the moment d after t. A sum beyond the scale is [End]. No moment of the clock is so early that one before it
// could be beyond.
func (t Time) Add(d time.Duration) Time {
	switch sum := t + Time(d); {
	case t == Never, t == End:
		return t
	case d > 0 && sum < t:
		return End
	default:
		return sum
	}
}

// Sub returns the time from u to t. It is [Ended] if t is [End].
func (t Time) Sub(u Time) time.Duration {
	switch d := t - u; {
	case t == End, u == Never, t > u && d < 0:
		return Ended
	case t == Never, t < u && d > 0:
		return math.MinInt64
	default:
		return time.Duration(d)
	}
}

// ago returns the time from t to now, -1 if t is [Never].
func (t Time) ago(now Time) time.Duration {
	if t == Never {
		return -1
	}
	return max(0, now.Sub(t))
}

// before returns the moment that long before now, [Never] if ago is negative.
func before(now Time, ago time.Duration) Time {
	if ago < 0 {
		return Never
	}
	return now.Add(-ago)
}

// column returns t as a database keeps it: null is [Never] or [End], as the column says.
func (t Time) column() any {
	if t == Never || t == End {
		return nil
	}
	return int64(t)
}
