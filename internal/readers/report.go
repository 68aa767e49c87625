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
	Feed string                 // only this feed; empty: all
	Of   func(feed string) bool // only feeds for which it returns true; nil: all
	Now  time.Time              // without the periods before the last one; zero: all periods
	// Changes returns the usual time between two changes of a feed, for the scores of its
	// readers. 0: not known. It may be nil.
	Changes func(feed string) time.Duration
	// Others are the counters of other nodes.
	Others []Snapshot
}

// Report returns a report of the requests that were counted.
func (s *Statistics) Report(o ReportOptions) status.ReaderReport {
	all := s.merged(o)
	declared := declaredSubscribers(all[ofReaders])
	r := status.ReaderReport{Feeds: []status.FeedReaders{}}
	var total Counters
	for i := range all[ofFeeds] {
		c := &all[ofFeeds][i]
		total.merge(c)
		r.Feeds = append(r.Feeds, status.FeedReaders{Feed: c.Feed, Subscribers: declared[[2]uint64{c.feedKey}], Counts: c.counts()})
	}
	r.Total, r.Hours = total.counts(), total.Hours
	slices.SortFunc(r.Feeds, func(a, b status.FeedReaders) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Feed, b.Feed))
	})
	r.Readers = rows(all[ofReaders], o.Changes, func(c *Counters) rowKey {
		network := ""
		if c.Network.IsValid() {
			network = c.Network.String()
		}
		return rowKey{c.agent.Family, c.agent.FeedID, network}
	})
	r.Families = rows(all[ofFamilies], o.Changes, func(c *Counters) rowKey {
		c.Subscribers = declared[[2]uint64{c.feedKey, c.agent.family}]
		return rowKey{family: c.agent.Family}
	})
	return r
}

// merged returns copies of the counters for a report, merged by key.
func (s *Statistics) merged(o ReportOptions) (all Snapshot) {
	s.mu.Lock()
	own := s.snapshot(s.limit)
	s.mu.Unlock()
	oldest := int64(0)
	if !o.Now.IsZero() {
		oldest = s.period(o.Now) - 1
	}
	for i := range all {
		places := make(map[uint64]int)
		for _, snapshot := range append([]Snapshot{own}, o.Others...) {
			for _, c := range snapshot[i] {
				if c.Period < oldest || o.Feed != "" && c.Feed != o.Feed[:min(len(o.Feed), maxFeedName)] || o.Of != nil && !o.Of(c.Feed) {
					continue
				}
				s.identify(&c, i)
				if place, ok := places[c.key]; ok {
					all[i][place].merge(&c)
					continue
				}
				places[c.key] = len(all[i])
				all[i] = append(all[i], c)
			}
		}
	}
	return all
}

// declaredSubscribers returns the numbers of subscribers that aggregators declare, by
// feed, and by feed and family: the sums of the latest number for each feed ID. The
// number of addresses does not matter.
func declaredSubscribers(readers []Counters) map[[2]uint64]int64 {
	latest := map[[3]uint64]*Counters{}
	for i := range readers {
		c := &readers[i]
		key := [...]uint64{c.feedKey, c.agent.family, c.agent.feedID}
		if o := latest[key]; c.Subscribers > 0 && (o == nil || cmp.Or(c.Last.Compare(o.Last), cmp.Compare(c.Subscribers, o.Subscribers)) > 0) {
			latest[key] = c
		}
	}
	sums := map[[2]uint64]int64{}
	for key, c := range latest {
		sums[[2]uint64{key[0], key[1]}] += c.Subscribers
		sums[[2]uint64{key[0]}] += c.Subscribers
	}
	return sums
}

// rowKey is what the counters of a row have in common.
type rowKey struct{ family, feedID, network string }

// rows groups counters of several feeds, scores the groups, and sorts them.
func rows(list []Counters, changes func(feed string) time.Duration, key func(*Counters) rowKey) []status.Reader {
	groups := map[rowKey]*group{}
	// The order is fixed, so that two reports of the same counters are equal.
	slices.SortFunc(list, func(a, b Counters) int {
		return cmp.Or(cmp.Compare(a.Feed, b.Feed), a.Last.Compare(b.Last), cmp.Compare(a.Requests, b.Requests))
	})
	for i := range list {
		k := key(&list[i])
		if groups[k] == nil {
			groups[k] = new(group)
		}
		groups[k].add(&list[i])
	}
	rows := make([]status.Reader, 0, len(groups))
	for k, c := range groups {
		row := status.Reader{
			UserAgent: c.UserAgent, Family: k.family, Kind: string(c.agent.Kind),
			Network: k.network, FeedID: k.feedID, Feeds: c.feeds,
			Subscribers: c.Subscribers, Judged: c.judged, Counts: c.counts(),
		}
		var every time.Duration
		if changes != nil {
			every = changes(c.main.Feed)
		}
		row.Score, row.Reasons = c.score(every)
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b status.Reader) int {
		return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.Family, b.Family),
			cmp.Compare(a.Network, b.Network), cmp.Compare(a.FeedID, b.FeedID))
	})
	return rows
}
