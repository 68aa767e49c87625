// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/readers"
)

// Savings implements [pages.Source]. They are those since the start of the process:
// nothing of them is stored yet.
func (s *Source) Savings(_ context.Context, limit int) (pages.Savings, error) {
	days, polls := s.Engine.Traffic()
	origins := make(map[string]poller.Traffic)
	for origin, t := range polls {
		if s.covers(origin) {
			origins[origin] = t
		}
	}
	// Of the ledger, which forgets: what an origin was spared is this at least.
	for _, f := range s.Engine.Ledger.Report(readers.ReportOptions{Of: s.covers}).Feeds {
		origin := poller.OriginOfKey(f.Feed)
		t := origins[origin]
		t.Requests, t.Served = t.Requests+f.Answers.Full+f.Answers.NotModified, t.Served+f.Bytes
		origins[origin] = t
	}
	var saved pages.Savings
	for _, origin := range slices.Sorted(maps.Keys(origins)) {
		t := pages.Traffic(origins[origin])
		saved.Origins = append(saved.Origins, pages.OriginTraffic{Origin: pages.Address(strings.TrimPrefix(origin, s.namespace())), Traffic: t})
		if s.Shield != "" {
			add(&saved.Total, t)
		}
	}
	slices.SortStableFunc(saved.Origins, func(a, b pages.OriginTraffic) int { return cmp.Compare(b.Spared(), a.Spared()) })
	saved.Origins = saved.Origins[:min(len(saved.Origins), limit)]
	if s.Shield != "" || len(days) == 0 {
		return saved, nil
	}
	listed := slices.SortedFunc(maps.Keys(days), time.Time.Compare)
	for day := listed[0]; !day.After(listed[len(listed)-1]); day = day.AddDate(0, 0, 1) {
		t := pages.Traffic(days[day])
		saved.Days = append(saved.Days, pages.DayTraffic{Day: day, Traffic: t})
		add(&saved.Total, t)
	}
	return saved, nil
}

// namespace is what stands before an origin of a shield.
func (s *Source) namespace() string {
	if s.Shield == "" {
		return ""
	}
	return s.prefix
}

func add(sum *pages.Traffic, t pages.Traffic) {
	sum.Requests += t.Requests
	sum.Polls += t.Polls
	sum.Served += t.Served
	sum.Fetched += t.Fetched
}
