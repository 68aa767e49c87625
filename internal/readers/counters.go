// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"net/netip"
	"time"
)

// onePoll is the time in which requests count as one poll, because some readers send a
// HEAD or two before each GET. It starts at the first request, so that a reader that
// asks every second has many polls and not one.
const onePoll = 5 * time.Second

// counters are the statistics of some requests: those of one reader or family for one
// feed, or all for one feed.
type counters struct {
	key     uint64 // in its table
	feed    string
	feedKey uint64
	agent   agent        // of the latest request
	network netip.Prefix // of a reader; the latest one in a family's
	token   string

	began, last, poll int64 // first and latest request, start of the latest poll; Unix nanoseconds

	requests, bytes                             int64
	gets, heads                                 int64 // requests by method; the rest have others
	full, notModified, limited, refused, failed int64 // answers: 200, 304, 429, other 4xx, 5xx
	byETag, byDate                              int64 // requests with If-None-Match, If-Modified-Since
	conditional                                 int64 // GETs with either
	whole                                       int64 // GETs without either, or with unknown validators
	current, earlier, unknown                   int64 // requests by the state of their validators
	identity                                    int64 // GETs that accept no compression
	packed, plain                               size  // full answers, compressed and not
	early                                       int64 // requests before the wait of a 429 was over
	skipped                                     int64 // requests in the feed's skip hours
	referers                                    int64
	polls                                       int64
	hours                                       [24]uint32 // requests by hour of day, GMT
	gaps                                        gaps
	identities, networks                        [identityWords]uint32 // sketches of 64 registers: standard error 13 %
	subscribers                                 int64                 // the latest declared number
}

const identityWords = 16

func (c *counters) identitySketch() sketch { return c.identities[:] }
func (c *counters) networkSketch() sketch  { return c.networks[:] }

// size is a number of answers and the sum of their bytes.
type size struct{ count, bytes int64 }

func (s *size) add(bytes int64) { s.count++; s.bytes += bytes }

// requester is the client of a request.
type requester struct {
	agent    agent
	identity uint64 // hash of User-Agent, full address and token
	network  netip.Prefix
	token    string
	hour     int // of the day, GMT
}

// count counts a request.
func (c *counters) count(r *Request, who *requester) {
	c.agent, c.network, c.token = who.agent, who.network, who.token
	if who.agent.Subscribers > 0 {
		c.subscribers = who.agent.Subscribers
	}
	c.identitySketch().add(who.identity)
	c.networkSketch().add(networkHash(who.network))
	c.countTime(r.Time.UnixNano())
	c.requests++
	c.bytes += r.Bytes
	c.hours[who.hour]++
	if r.Referer {
		c.referers++
	}
	if r.Early {
		c.early++
	}
	if r.SkipHours.Contains(r.Time) {
		c.skipped++
	}
	c.countConditions(r)
	c.countAnswer(r)
}

// countTime counts the poll that a request belongs to.
func (c *counters) countTime(at int64) {
	gap := time.Duration(at - c.poll)
	if c.requests == 0 {
		c.began, c.last = at, at
	}
	switch {
	case c.poll == 0:
		c.poll = at
		c.polls++
	case gap >= onePoll:
		c.polls++
		c.poll = at
		c.gaps.add(gap)
	case gap < -time.Hour: // the clock was set back: the gap is not known
		c.polls++
		c.poll = at
	}
	c.began, c.last = min(c.began, at), max(c.last, at)
}

// countConditions counts the method and the conditions of a request.
func (c *counters) countConditions(r *Request) {
	if r.IfNoneMatch != "" {
		c.byETag++
	}
	if r.IfModifiedSince != "" {
		c.byDate++
	}
	switch r.Validators {
	case ValidatorsCurrent:
		c.current++
	case ValidatorsEarlier:
		c.earlier++
	case ValidatorsUnknown:
		c.unknown++
	}
	switch r.Method {
	case http.MethodHead:
		c.heads++
	case http.MethodGet:
		c.gets++
		if r.Conditional() {
			c.conditional++
		}
		if r.whole() {
			c.whole++
		}
		if !r.Compressible {
			c.identity++
		}
	}
}

// countAnswer counts the answer to a request.
func (c *counters) countAnswer(r *Request) {
	switch {
	case r.Status == http.StatusOK:
		c.full++
		if r.Method == http.MethodGet {
			if r.Compressible {
				c.packed.add(r.Bytes)
			} else {
				c.plain.add(r.Bytes)
			}
		}
	case r.Status == http.StatusNotModified:
		c.notModified++
	case r.Status == http.StatusTooManyRequests:
		c.limited++
	case r.Status >= 500:
		c.failed++
	case r.Status >= 400:
		c.refused++
	}
}

// merge adds other counters. The names are those of the counters with the later request.
func (c *counters) merge(o *counters) {
	if c.requests == 0 || o.began < c.began {
		c.began = o.began
	}
	if c.requests == 0 || o.last >= c.last {
		c.agent, c.network, c.token, c.last, c.poll = o.agent, o.network, o.token, o.last, o.poll
		c.key, c.feed, c.feedKey = o.key, o.feed, o.feedKey
		if o.subscribers > 0 {
			c.subscribers = o.subscribers
		}
	}
	from := o.sums()
	for i, sum := range c.sums() {
		*sum += *from[i]
	}
	for i, n := range o.hours {
		c.hours[i] += n
	}
	c.gaps.merge(&o.gaps)
	c.identitySketch().merge(o.identitySketch())
	c.networkSketch().merge(o.networkSketch())
}

// sums are the numbers that add up. Their order is saved: new ones are appended.
func (c *counters) sums() []*int64 {
	return []*int64{
		&c.requests, &c.bytes, &c.gets, &c.heads, &c.full, &c.notModified, &c.limited, &c.refused, &c.failed,
		&c.byETag, &c.byDate, &c.conditional, &c.whole, &c.current, &c.earlier, &c.unknown, &c.identity,
		&c.early, &c.skipped, &c.referers, &c.polls,
		&c.packed.count, &c.packed.bytes, &c.plain.count, &c.plain.bytes,
	}
}
