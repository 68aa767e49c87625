// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import "time"

// About is what a score should know of a feed. The zero value: nothing.
type About struct {
	Changes time.Duration // the usual time between two changes; 0: not known
}

// conduct is what a score judges: the requests of a reader or family, for one
// feed or for several, and how many readers they are taken to come from.
type conduct struct {
	counters
	feeds    int64
	judged   int64         // readers, summed over feeds
	exposure time.Duration // how long each of them was watched, summed
	main     *counters     // of the feed with the most polls
}

func (c *conduct) add(o *counters) {
	n := o.judgedAs()
	c.feeds++
	c.judged += n
	c.exposure += time.Duration(n) * time.Duration(o.last-o.began)
	if c.main == nil || o.polls > c.main.polls || o.polls == c.main.polls && o.feed < c.main.feed {
		c.main = o
	}
	c.merge(o)
}

// judgedAs is how many readers the requests are taken to come from. Each
// User-Agent at each full address is one, so that people behind one address with
// different readers, and addresses of one provider's customers, do not add up to
// one that never rests. But the addresses of one network are one reader where they
// are one operator's machines: where the User-Agent declares subscribers, or where
// it neither names a person's system nor a library that anybody uses, and hardly
// any request is conditional, so that one machine's fetches save the others none.
// Several networks are never one reader.
func (c *counters) judgedAs() int64 {
	n := c.identitySketch().count()
	if c.together() {
		n = min(n, c.networkSketch().count())
	}
	n += n / 4 // an estimate may be wrong by an eighth: twice the benefit of the doubt
	return max(1, min(n, c.polls))
}

func (c *counters) together() bool {
	return c.subscribers > 0 || c.agent.hosted() && c.gets > 0 && c.conditional*8 < c.gets
}

// hosted reports whether a User-Agent may be one operator's on many machines.
func (a *Agent) hosted() bool { return a.Kind == KindService || a.Kind == KindNone }

// repeats is how many polls came after a reader's first one.
func (c *conduct) repeats() int64 { return c.polls - c.judged }

// gap is the time between two polls of one reader: the median, and for several
// the average, since their polls are mixed.
func (c *conduct) gap() time.Duration {
	if c.judged == c.feeds {
		return time.Duration(c.gaps.median()) * time.Second
	}
	return c.every(c.repeats())
}

// every is the time between events that each reader has, on average.
func (c *conduct) every(events int64) time.Duration {
	if events <= 0 {
		return c.exposure
	}
	return c.exposure / time.Duration(events)
}
