// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/feedpollard/pollard/caddymodule/pages"
	"github.com/feedpollard/pollard/caddymodule/poller"
	"github.com/feedpollard/pollard/internal/readers"
)

// Readers implements [pages.Source]. They are grouped by User-Agent family.
func (s *Source) Readers(ctx context.Context, limit int) (pages.Readers, error) {
	report := s.Engine.Readers(ctx, readers.ReportOptions{Of: s.covers, About: s.Engine.About})
	r := pages.Readers{
		Since: report.Total.First, Readers: int64(len(report.Readers)),
		Requests: report.Total.Requests, Bytes: report.Total.Bytes, Hours: report.Hours,
	}
	for i := range report.Readers {
		row := &report.Readers[i]
		if row.Score == "-" {
			continue
		}
		r.Judged++
		if row.Methods.Get > 0 && row.ShareConditional == 0 {
			r.Unconditional++
			r.UnconditionalBytes += row.Bytes
		}
	}
	families := report.Families
	r.ByRequests = readersOf(families[:min(len(families), limit)])
	slices.SortStableFunc(families, func(a, b readers.Row) int { return cmp.Compare(b.Bytes, a.Bytes) })
	r.ByBytes = readersOf(families[:min(len(families), limit)])
	return r, nil
}

func readersOf(rows []readers.Row) []pages.Reader {
	list := make([]pages.Reader, 0, len(rows))
	for i := range rows {
		row := &rows[i]
		list = append(list, pages.Reader{
			Family: row.Family, UserAgent: row.UserAgent, Network: row.Network, Token: row.Token,
			Feeds: row.Feeds, Subscribers: row.Subscribers, Requests: row.Requests, Bytes: row.Bytes,
			ShareConditional: row.ShareConditional, MedianGap: time.Duration(row.MedianGap) * time.Second,
			Score: row.Score, Reasons: row.Reasons,
		})
	}
	return list
}

// readersOf are the readers of one feed, those with the most requests.
func (s *Source) readersOf(ctx context.Context, key string) []pages.Reader {
	if k, ok := poller.ParseShieldKey(key); ok {
		key = k.Plain().String() // its variants are the same feed to its readers
	}
	report := s.Engine.Readers(ctx, readers.ReportOptions{Feed: key, Limit: maxReaders, About: s.Engine.About})
	return readersOf(report.Readers)
}
