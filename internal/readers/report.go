// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"cmp"
	"slices"
	"time"

	"github.com/feedpollard/pollard/internal/status"
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

// Report returns a report of the requests that were counted.
func (s *Statistics) Report(o ReportOptions) status.ReaderReport {
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
	r := status.ReaderReport{Total: total.counts(), Capacity: s.limit, Forgotten: forgotten, Feeds: []status.FeedReaders{}}
	for hour, count := range total.hours {
		r.Hours[hour] = int64(count)
	}
	for i := range all.feeds {
		c := &all.feeds[i]
		r.Feeds = append(r.Feeds, status.FeedReaders{Feed: c.feed, Subscribers: declared.feed(c.feedKey), Counts: c.counts()})
	}
	slices.SortFunc(r.Feeds, func(a, b status.FeedReaders) int {
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
func rows(list []counters, feeds map[uint64]*counters, o ReportOptions, key func(*counters) rowKey) []status.Reader {
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
	rows := make([]status.Reader, 0, len(groups))
	for k, c := range groups {
		row := status.Reader{
			UserAgent: c.agent.UserAgent, Family: k.family, Kind: string(c.agent.Kind),
			Network: k.network, FeedID: k.feedID, Token: k.token, Feeds: c.feeds,
			Subscribers: c.subscribers, Judged: c.judged, Counts: c.counts(),
		}
		row.Score, row.Reasons = c.score(o.About(c.main.feed), feeds[c.main.feedKey])
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b status.Reader) int {
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

func (c *counters) counts() status.Counts {
	n := status.Counts{
		Requests: c.requests, Bytes: c.bytes, Polls: c.polls,
		MedianGap: status.Seconds(time.Duration(c.gaps.median()) * time.Second), Gaps: c.gaps.list(),
		Addresses: c.identitySketch().count(), Networks: c.networkSketch().count(),
		Methods:    status.Methods{Get: c.gets, Head: c.heads, Other: c.requests - c.gets - c.heads},
		Answers:    status.Answers{Full: c.full, NotModified: c.notModified, Limited: c.limited, Refused: c.refused, Failed: c.failed},
		Conditions: status.Conditions{IfNoneMatch: c.byETag, IfModifiedSince: c.byDate, Current: c.current, Earlier: c.earlier, Unknown: c.unknown},
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
