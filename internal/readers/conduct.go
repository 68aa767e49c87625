// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import "time"

// About describes a feed for scoring its readers. The zero About means that nothing is
// known.
type About struct {
	Changes time.Duration // the usual time between two changes; 0: not known
}

// conduct is the basis of a score: the requests of a reader or family for one or more
// feeds, and how many readers they are taken to come from.
type conduct struct {
	counters
	feeds    int64
	judged   int64         // readers, summed over feeds
	exposure time.Duration // the time between first and last request, summed over these readers
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

// judgedAs returns how many readers the requests are taken to come from. Usually each
// User-Agent at each full address is a reader, so that people who share an address or
// a provider are not scored as one fast reader. The addresses of one network count as
// one reader if they seem to be the machines of one operator: the User-Agent declares
// subscribers, or it names neither a person's system nor a common library and hardly any
// request is conditional. Several networks are never one reader.
func (c *counters) judgedAs() int64 {
	n := c.identitySketch().count()
	if c.together() {
		n = min(n, c.networkSketch().count())
	}
	n += n / 4 // twice the standard error of the estimate, in favour of the reader
	return max(1, min(n, c.polls))
}

func (c *counters) together() bool {
	return c.subscribers > 0 || c.agent.hosted() && c.gets > 0 && c.conditional*8 < c.gets
}

// hosted reports whether a User-Agent may be that of one operator's many machines.
func (a *Agent) hosted() bool { return a.Kind == KindService || a.Kind == KindNone }

// repeats returns the number of polls without the first one of each reader.
func (c *conduct) repeats() int64 { return c.polls - c.judged }

// gap returns the time between two polls of a reader: the median for one reader, the
// average for several, whose polls are mixed.
func (c *conduct) gap() time.Duration {
	if c.judged == c.feeds {
		return time.Duration(c.gaps.median()) * time.Second
	}
	return c.every(c.repeats())
}

// every returns the average time between events of a reader.
func (c *conduct) every(events int64) time.Duration {
	if events <= 0 {
		return c.exposure
	}
	return c.exposure / time.Duration(events)
}
