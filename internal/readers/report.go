// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"slices"
	"time"
)

// ReportOptions select the contents of a report.
type ReportOptions struct {
	Feed  string                  // only this feed; empty: all
	Of    func(feed string) bool  // only feeds for which it returns true; nil: all
	Limit int                     // rows per list; 0: all
	About func(feed string) About // describes a feed for scores; may be nil
	// Others are the counts of other nodes.
	Others []*Snapshot
}

// Report has the statistics of readers. Its lists are sorted by requests, most first, and
// are never nil.
type Report struct {
	Total    Counts    `json:"total"`
	Feeds    []FeedRow `json:"feeds"`
	Readers  []Row     `json:"readers"`  // one row per family, network, feed ID and token
	Families []Row     `json:"families"` // one row per User-Agent family, over all networks

	Hours [24]int64 `json:"hours"` // requests by hour of day, GMT

	Capacity  int   `json:"capacity"`  // the most readers of feeds that are remembered
	Forgotten int64 `json:"forgotten"` // evicted readers; their requests remain in the totals
}

// Row is a reader, or a family.
type Row struct {
	UserAgent   string   `json:"user_agent"` // of the latest request
	Family      string   `json:"family"`
	Kind        Kind     `json:"kind"`
	Network     string   `json:"network,omitempty"` // of a reader: IPv4 /24 or IPv6 /48
	FeedID      string   `json:"feed_id,omitempty"`
	Token       string   `json:"token,omitempty"` // the token's name
	Feeds       int64    `json:"feeds"`
	Subscribers int64    `json:"subscribers"` // declared; 0 if none
	Score       string   `json:"score"`       // A to F; "-": too few requests
	Reasons     []string `json:"reasons"`     // the three that matter most
	Judged      int64    `json:"judged_as"`   // how many readers the score assumes, summed over feeds
	Counts
}

// FeedRow counts all requests for a feed.
type FeedRow struct {
	Feed        string `json:"feed"`
	Subscribers int64  `json:"subscribers"` // declared by aggregators; each feed ID counts once
	Counts
}

// Counts are the statistics of some requests.
type Counts struct {
	Requests         int64      `json:"requests"`
	Bytes            int64      `json:"bytes"`
	Polls            int64      `json:"polls"`              // requests within 5 s count as one
	ShareConditional float64    `json:"share_conditional"`  // of GETs
	ShareCompressed  float64    `json:"share_compressed"`   // of GETs: those that accept compression
	MedianGap        int64      `json:"median_gap_seconds"` // between polls; an estimate; 0 after only one poll
	Gaps             []Gap      `json:"gaps"`
	Addresses        int64      `json:"addresses"` // estimate of different User-Agents at different addresses
	Networks         int64      `json:"networks"`  // estimate
	Methods          Methods    `json:"methods"`
	Answers          Answers    `json:"answers"`
	Conditions       Conditions `json:"conditions"`
	Early            int64      `json:"early"`         // requests before the wait of a 429 was over
	InSkipHours      int64      `json:"in_skip_hours"` // requests
	Referers         int64      `json:"referers"`
	First            time.Time  `json:"first,omitzero"`
	Last             time.Time  `json:"last,omitzero"`
}

// Methods are requests by method.
type Methods struct {
	Get   int64 `json:"get"`
	Head  int64 `json:"head"`
	Other int64 `json:"other"`
}

// Answers are requests by the status of the answer.
type Answers struct {
	Full        int64 `json:"full"`         // 200
	NotModified int64 `json:"not_modified"` // 304
	Limited     int64 `json:"limited"`      // 429
	Refused     int64 `json:"refused"`      // other 4xx
	Failed      int64 `json:"failed"`       // 5xx
}

// Conditions are conditional requests, by header field and by the state of the validators.
type Conditions struct {
	IfNoneMatch     int64 `json:"if_none_match"`
	IfModifiedSince int64 `json:"if_modified_since"`
	Current         int64 `json:"current"`
	Earlier         int64 `json:"earlier"`
	Unknown         int64 `json:"unknown"` // validators that the feed never had
}

// Report returns a report of the requests that were counted.
func (s *Statistics) Report(o ReportOptions) Report {
	if o.About == nil {
		o.About = func(string) About { return About{} }
	}
	all, forgotten := s.all(o)
	feeds := map[uint64]*counters{}
	var total counters
	for i := range all.feeds {
		feeds[all.feeds[i].feedKey] = &all.feeds[i]
		total.merge(&all.feeds[i])
	}
	if o.Feed == "" && o.Of == nil && all.rest.requests > 0 {
		total.merge(&all.rest)
	}
	declared := declaredSubscribers(all.readers)
	r := Report{Total: total.counts(), Capacity: s.limit, Forgotten: forgotten, Feeds: []FeedRow{}}
	for hour, count := range total.hours {
		r.Hours[hour] = int64(count)
	}
	for i := range all.feeds {
		c := &all.feeds[i]
		r.Feeds = append(r.Feeds, FeedRow{c.feed, declared.feed(c.feedKey), c.counts()})
	}
	slices.SortFunc(r.Feeds, func(a, b FeedRow) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Feed, b.Feed))
	})
	r.Readers = rows(all.readers, feeds, o, func(c *counters) rowKey {
		return rowKey{c.agent.Family, c.agent.FeedID, c.token, c.networkText()}
	})
	r.Families = rows(all.families, feeds, o, func(c *counters) rowKey {
		c.subscribers = declared.family(c)
		return rowKey{family: c.agent.Family}
	})
	if o.Limit > 0 {
		r.Feeds = r.Feeds[:min(len(r.Feeds), o.Limit)]
		r.Readers = r.Readers[:min(len(r.Readers), o.Limit)]
		r.Families = r.Families[:min(len(r.Families), o.Limit)]
	}
	return r
}

// all returns copies of the counters for a report, and how many readers were forgotten.
func (s *Statistics) all(o ReportOptions) (all lists, forgotten int64) {
	s.lock()
	own := lists{copies(s.tables.feeds), copies(s.tables.families), copies(s.tables.readers), s.evicted}
	forgotten = s.forgotten
	parts := []lists{own}
	if s.previous != nil {
		parts = append(parts, s.read(s.previous))
	}
	s.mu.Unlock()
	for _, snapshot := range o.Others {
		parts = append(parts, s.read(snapshot))
	}
	key := s.seed.text(o.Feed)
	wanted := func(c *counters) bool {
		return c.requests > 0 && (o.Feed == "" || c.feedKey == key) && (o.Of == nil || o.Of(c.feed))
	}
	for _, part := range parts {
		if part.rest.requests > 0 {
			all.rest.merge(&part.rest)
		}
	}
	all.feeds = merged(parts, wanted, func(l *lists) []counters { return l.feeds })
	all.families = merged(parts, wanted, func(l *lists) []counters { return l.families })
	all.readers = merged(parts, wanted, func(l *lists) []counters { return l.readers })
	return all, forgotten
}

func copies(t *lru[counters]) []counters {
	list := make([]counters, 0, t.Len())
	for _, c := range t.Values() {
		list = append(list, *c)
	}
	return list
}

// merged merges one list of several parts by key.
func merged(parts []lists, wanted func(*counters) bool, list func(*lists) []counters) []counters {
	var all []counters
	places := make(map[uint64]int)
	for i := range parts {
		from := list(&parts[i])
		for j := range from {
			c := &from[j]
			if !wanted(c) {
				continue
			}
			if place, ok := places[c.key]; ok {
				all[place].merge(c)
				continue
			}
			places[c.key] = len(all)
			all = append(all, *c)
		}
	}
	return all
}

// rowKey is what the counters of a row have in common.
type rowKey struct{ family, feedID, token, network string }

// rows groups counters of several feeds, scores the groups, and sorts them.
func rows(list []counters, feeds map[uint64]*counters, o ReportOptions, key func(*counters) rowKey) []Row {
	groups := map[rowKey]*conduct{}
	// The order is fixed, so that two reports of the same counters are equal.
	slices.SortFunc(list, func(a, b counters) int {
		return cmp.Or(cmp.Compare(a.feed, b.feed), cmp.Compare(a.last, b.last), cmp.Compare(a.requests, b.requests))
	})
	for i := range list {
		k := key(&list[i])
		if groups[k] == nil {
			groups[k] = new(conduct)
		}
		groups[k].add(&list[i])
	}
	rows := make([]Row, 0, len(groups))
	for k, c := range groups {
		row := Row{
			UserAgent: c.agent.UserAgent, Family: k.family, Kind: c.agent.Kind,
			Network: k.network, FeedID: k.feedID, Token: k.token, Feeds: c.feeds,
			Subscribers: c.subscribers, Judged: c.judged, Counts: c.counts(),
		}
		row.Score, row.Reasons = c.score(o.About(c.main.feed), feeds[c.main.feedKey])
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Family, b.Family),
			cmp.Compare(a.Network, b.Network), cmp.Compare(a.FeedID, b.FeedID), cmp.Compare(a.Token, b.Token))
	})
	return rows
}

func (c *counters) networkText() string {
	if !c.network.IsValid() {
		return ""
	}
	return c.network.String()
}

func (c *counters) counts() Counts {
	n := Counts{
		Requests: c.requests, Bytes: c.bytes, Polls: c.polls,
		MedianGap: c.gaps.median(), Gaps: c.gaps.list(),
		Addresses: c.identitySketch().count(), Networks: c.networkSketch().count(),
		Methods:    Methods{c.gets, c.heads, c.requests - c.gets - c.heads},
		Answers:    Answers{c.full, c.notModified, c.limited, c.refused, c.failed},
		Conditions: Conditions{c.byETag, c.byDate, c.current, c.earlier, c.unknown},
		Early:      c.early, InSkipHours: c.skipped, Referers: c.referers,
	}
	if c.gets > 0 {
		n.ShareConditional = float64(c.conditional) / float64(c.gets)
		n.ShareCompressed = 1 - float64(c.identity)/float64(c.gets)
	}
	if c.requests > 0 {
		n.First, n.Last = time.Unix(0, c.began).UTC(), time.Unix(0, c.last).UTC()
	}
	return n
}
