// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"math"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// Time is a moment on the store's own scale, in nanoseconds. The scale never goes
// back; where it begins means nothing.
type Time int64

const (
	// Never is when something happened that has not happened.
	Never Time = math.MinInt64
	// End is when a feed is polled that is not polled any more.
	End Time = math.MaxInt64
)

// Add returns the moment d later. What lies beyond the scale is [End], or just
// after [Never].
func (t Time) Add(d time.Duration) Time {
	switch sum := t + Time(d); {
	case t == Never, t == End:
		return t
	case d > 0 && sum < t:
		return End
	case d < 0 && (sum > t || sum == Never):
		return Never + 1
	default:
		return sum
	}
}

// Sub returns the time from u to t, which is [cache.Ended] where t is [End].
func (t Time) Sub(u Time) time.Duration {
	switch d := t - u; {
	case t == End, u == Never, t > u && d < 0:
		return store.Ended
	case t == Never, t < u && d > 0:
		return math.MinInt64
	default:
		return time.Duration(d)
	}
}

// ago is how long before now t was; negative where that never was.
func (t Time) ago(now Time) time.Duration {
	if t == Never {
		return -1
	}
	return max(0, now.Sub(t))
}

// before is the moment so long before now; negative: Never.
func before(now Time, ago time.Duration) Time {
	if ago < 0 {
		return Never
	}
	return now.Add(-ago)
}
