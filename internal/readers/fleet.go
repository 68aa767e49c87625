// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/internal/feedurl"
)

const (
	// wholeFeedsOfFleet is how many whole feeds a fleet gets in an interval.
	wholeFeedsOfFleet = 4
	// maxFleets is how many fleets, each at one page, a limiter remembers.
	maxFleets = 4096
)

// place is a whole feed that a network of a fleet got. Each counts for an interval.
type place struct {
	at      time.Time
	network uint64 // its hash
}

// checkFleet decides on a request of a fleet that only the whole feed can answer. Concurrent
// requests are counted at once, so it takes the place before the answer.
func (l *Limiter) checkFleet(d Limits, s *state, r *Request) Verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken, _ := l.fleets.find(l.seed.text(d.Fleet))
	from := l.seed.address(feedurl.Network(r.Client).Addr())
	var free time.Time
	*taken, free = remaining(*taken, from, r.Time, d.interval())
	if free.After(r.Time) {
		return Verdict{
			Status: http.StatusTooManyRequests, Until: free, Early: s.wait.After(r.Time), Rule: RuleFleet,
			Reason: tooMany(wholeFeedsOfFleet, d.interval(), " for all machines of this program, one for each network"),
		}
	}
	d.Unconditional = 0
	v := d.check(s, r)
	if v.Status == 0 || v.Status == http.StatusNotAcceptable {
		*taken = append(*taken, place{r.Time, from})
	}
	return v
}

// remaining returns the places that are still taken, oldest first, and when a network may
// take one; the zero time: now. A network that has a place waits for the end of that one.
func remaining(places []place, from uint64, now time.Time, interval time.Duration) (left []place, free time.Time) {
	for _, p := range places {
		if p.at.After(now) {
			p.at = now // the clock was set back: never wait for longer than the interval
		}
		end := p.at.Add(interval)
		if !end.After(now) {
			continue
		}
		left = append(left, p)
		if p.network == from {
			free = end
		}
	}
	if len(left) >= wholeFeedsOfFleet && free.IsZero() {
		free = left[0].at.Add(interval)
	}
	return left, free
}
