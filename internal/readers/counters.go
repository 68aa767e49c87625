// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"net/http"
	"net/netip"
	"reflect"
	"time"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/internal/status"
)

// onePoll is the time in which requests count as one poll, because some readers send a
// HEAD or two before each GET. It starts at the first request, so that a reader that
// asks every second has many polls and not one.
const onePoll = 5 * time.Second

// Counters are the statistics of one reader or family for one feed, or of all requests
// for a feed, in one period. The shares, estimates and the median of Counts are computed
// by a report.
type Counters struct {
	status.Counts
	requests
	Period      int64        `json:"period"` // counted from 1970
	Feed        string       `json:"feed"`
	UserAgent   string       `json:"user_agent,omitempty"` // of the latest request, as are the next two
	Network     netip.Prefix `json:"network,omitzero"`
	Subscribers int64        `json:"subscribers,omitempty"` // the latest declared number
	Poll        time.Time    `json:"poll"`                  // start of the latest poll
	Gaps        gaps         `json:"gaps"`
	Clients     smallSketch  `json:"clients"` // a sketch of User-Agents at full addresses
	Nets        smallSketch  `json:"nets"`    // a sketch of networks

	agent        *agent // of UserAgent; nil if the counters were read from a snapshot
	key, feedKey uint64 // in its list, in all periods
}

// requests are counts of them that a report does not show.
type requests struct {
	Conditional int64     `json:"conditional"` // GETs with validators
	Whole       int64     `json:"whole"`       // GETs without validators, or with unknown ones
	Identity    int64     `json:"identity"`    // GETs that accept no compression
	Hours       [24]int64 `json:"hours"`       // requests by hour of day, GMT
}

// smallSketch is a sketch with 64 registers: its standard error is 13 %.
type smallSketch [16]uint32

// agent is a parsed User-Agent with the hashes of its family and feed ID.
type agent struct {
	Agent
	family, feedID uint64
}

func (c *Counters) count(r *Request, by *agent, identity uint64) {
	c.agent, c.UserAgent, c.Network = by, by.UserAgent, feedurl.Network(r.Client)
	if by.Subscribers > 0 {
		c.Subscribers = by.Subscribers
	}
	sketch(c.Clients[:]).add(identity)
	sketch(c.Nets[:]).add(common.address(c.Network.Addr()))
	c.countTime(r.Time)
	c.Requests++
	c.Bytes += r.Bytes
	c.Hours[r.Time.UTC().Hour()]++
	if r.Early {
		c.Early++
	}
	if r.SkipHours.Contains(r.Time) {
		c.InSkipHours++
	}
	c.countConditions(r)
	c.countAnswer(r)
}

// countTime counts the poll that a request belongs to.
func (c *Counters) countTime(at time.Time) {
	gap := at.Sub(c.Poll)
	if c.Requests == 0 {
		c.First, c.Last = at, at
	}
	switch {
	case gap >= onePoll && !c.Poll.IsZero():
		c.Gaps.add(gap)
		fallthrough
	case c.Poll.IsZero(), gap < -time.Hour: // the clock was set back: the gap is not known
		c.Poll = at
		c.Polls++
	}
	if at.Before(c.First) {
		c.First = at
	}
	if at.After(c.Last) {
		c.Last = at
	}
}

// countConditions counts the method and the conditions of a request.
func (c *Counters) countConditions(r *Request) {
	if r.IfNoneMatch != "" {
		c.Conditions.IfNoneMatch++
	}
	if r.IfModifiedSince != "" {
		c.Conditions.IfModifiedSince++
	}
	switch r.Validators {
	case version.Current:
		c.Conditions.Current++
	case version.Earlier:
		c.Conditions.Earlier++
	case version.Unknown:
		c.Conditions.Unknown++
	}
	switch r.Method {
	case http.MethodHead:
		c.Methods.Head++
	case http.MethodGet:
		c.Methods.Get++
		if r.Conditional() {
			c.Conditional++
		}
		if r.whole() {
			c.Whole++
		}
		if !r.Compression {
			c.Identity++
		}
	default:
		c.Methods.Other++
	}
}

func (c *Counters) countAnswer(r *Request) {
	switch {
	case r.Status == http.StatusOK:
		c.Answers.Full++
	case r.Status == http.StatusNotModified:
		c.Answers.NotModified++
	case r.Status == http.StatusTooManyRequests:
		c.Answers.Limited++
	case r.Status >= 500:
		c.Answers.Failed++
	case r.Status >= 400:
		c.Answers.Refused++
	}
}

// merge adds other counters. The names are those of the counters with the later request.
func (c *Counters) merge(o *Counters) {
	if c.Requests == 0 || o.First.Before(c.First) {
		c.First = o.First
	}
	if c.Requests == 0 || !o.Last.Before(c.Last) {
		c.agent, c.UserAgent, c.Network, c.Last, c.Poll = o.agent, o.UserAgent, o.Network, o.Last, o.Poll
		c.key, c.Feed, c.feedKey = o.key, o.Feed, o.feedKey
		if o.Subscribers > 0 {
			c.Subscribers = o.Subscribers
		}
	}
	addUp(reflect.ValueOf(&c.Counts).Elem(), reflect.ValueOf(&o.Counts).Elem())
	addUp(reflect.ValueOf(&c.requests).Elem(), reflect.ValueOf(&o.requests).Elem())
	c.Gaps.merge(&o.Gaps)
	sketch(c.Clients[:]).merge(o.Clients[:])
	sketch(c.Nets[:]).merge(o.Nets[:])
}

// addUp adds each int64 of a struct or array to the same one of another, so that no counter is
// forgotten.
func addUp(sum, more reflect.Value) {
	switch sum.Kind() {
	case reflect.Int64:
		sum.SetInt(sum.Int() + more.Int())
	case reflect.Array:
		for i := range sum.Len() {
			addUp(sum.Index(i), more.Index(i))
		}
	case reflect.Struct:
		if sum.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range sum.NumField() {
			addUp(sum.Field(i), more.Field(i))
		}
	}
}

// counts returns the counters with the shares, the estimates and the median.
func (c *Counters) counts() status.Counts {
	n := c.Counts
	n.MedianGap = status.Seconds(time.Duration(c.Gaps.median()) * time.Second)
	n.Addresses, n.Networks = sketch(c.Clients[:]).count(), sketch(c.Nets[:]).count()
	n.ShareConditional, n.ShareCompressed = share(c.Conditional, c.Methods.Get), share(c.Methods.Get-c.Identity, c.Methods.Get)
	n.First, n.Last = n.First.UTC(), n.Last.UTC()
	return n
}

func share(part, whole int64) float64 { return float64(part) / float64(max(whole, 1)) }
