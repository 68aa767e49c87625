// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"math"
	"time"

	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/policy"
)

// Report is the result of a replay.
type Report struct {
	Path string    `json:"path"` // of the feed
	From time.Time `json:"from"` // of the first request
	To   time.Time `json:"to"`
	Feed Feed      `json:"feed"`

	// In the log.
	Requests            int64            `json:"requests"`
	Bytes               int64            `json:"bytes"` // as logged
	BytesOfHeaders      bool             `json:"bytes_include_headers"`
	Logged              map[string]int64 `json:"logged"` // answers by status
	RequestsInSkipHours int64            `json:"requests_in_skip_hours"`

	// At the origin, in the replay.
	OriginRequests            int64 `json:"origin_requests"`
	OriginBytes               int64 `json:"origin_bytes"` // status line, header fields and body, as HTTP/1.1 sends them
	OriginNotModified         int64 `json:"origin_not_modified"`
	OriginRequestsInSkipHours int64 `json:"origin_requests_in_skip_hours"`

	// To readers, in the replay. Bytes include header fields if those of the log do.
	Served      map[string]int64 `json:"served"` // answers by status
	ServedBytes int64            `json:"served_bytes"`
	// Of the requests that got the whole feed in the same coding in both. They differ if the given
	// feed is not as large as the log's.
	WholeBytes       int64 `json:"whole_bytes"`
	ServedWholeBytes int64 `json:"served_whole_bytes"`
	// HandshakeBytes estimates the bytes of TLS handshakes in the log. ServedBytes does
	// not include them.
	HandshakeBytes int64 `json:"handshake_bytes"`
	PassedThrough  int64 `json:"passed_through"` // requests that are answered as in the log: redirects, POST and others

	// Lines of the log, and those that differ from the rest.
	Lines      int64 `json:"lines"` // all
	Malformed  int64 `json:"malformed_lines"`
	OtherLines int64 `json:"other_lines"` // valid, but not requests
	OtherPaths int64 `json:"other_paths"` // requests for other paths
	OutOfOrder int64 `json:"out_of_order"`

	Readers []Reader `json:"readers"` // most requests first
}

// Feed is the feed that was served.
type Feed struct {
	Format      string        `json:"format"`
	Version     string        `json:"version,omitempty"`
	Entries     int           `json:"entries"`
	Bytes       int64         `json:"bytes"`
	Compressed  int64         `json:"compressed_bytes"` // with gzip
	Changes     int64         `json:"changes"`          // during the log
	ChangeEvery time.Duration `json:"-"`                // 0: it did not change
	Unchanging  bool          `json:"unchanging,omitempty"`
	Hints       policy.Hints  `json:"hints"`
}

// Reader is a program that requested the feed, from all addresses. The last three fields
// are the results of the replay; the others describe the log.
type Reader struct {
	UserAgent        string   `json:"user_agent"` // of the latest request
	Family           string   `json:"family"`
	Requests         int64    `json:"requests"`
	Bytes            int64    `json:"bytes"` // as logged
	ShareConditional float64  `json:"share_conditional"`
	ShareCompressed  float64  `json:"share_compressed"`
	MedianGap        int64    `json:"median_gap_seconds"`
	Addresses        int64    `json:"addresses"` // estimate
	Networks         int64    `json:"networks"`  // estimate
	Score            string   `json:"score"`     // A to F; "-": not judged yet
	Reasons          []string `json:"reasons"`
	ServedBytes      int64    `json:"served_bytes"`
	Refused          int64    `json:"refused"`            // 4xx
	AsFleet          *Fleet   `json:"as_fleet,omitempty"` // if it seems to be a crawler with several addresses
}

// Fleet is what a line fleet with the name of a program would change: the requests that
// would be refused too, and the bytes of their answers.
type Fleet struct {
	Refused int64 `json:"refused"`
	Bytes   int64 `json:"bytes"`
}

// finish completes the report with what the origin has counted, and with the readers.
func (s *gateway) finish() *Report {
	o, r := s.origin, &s.report
	o.mu.Lock()
	defer o.mu.Unlock()
	d := o.feed.document
	r.Feed = Feed{
		Format: d.Format, Version: d.Version, Entries: d.Rhythm.Entries, Hints: d.Hints,
		Bytes: int64(len(o.feed.first)), Compressed: s.sizes.packed, ChangeEvery: o.feed.every, Unchanging: r.Feed.Unchanging,
	}
	if every := o.feed.every; every > 0 {
		r.Feed.Changes = int64(r.To.Sub(o.feed.begin) / every)
	}
	r.OriginRequests, r.OriginBytes, r.OriginNotModified, r.OriginRequestsInSkipHours = o.polls, o.bytes, o.notModified, o.inSkipHours
	r.Readers = s.readersOfLog(o.feed.every)
	return r
}

// fewAddresses is the most addresses of a program that gains nothing from a fleet.
const fewAddresses = 4

// readersOfLog returns the readers of the log with the results of the replay.
func (s *gateway) readersOfLog(every time.Duration) []Reader {
	changes := func(string) time.Duration { return every }
	list := []Reader{}
	for _, row := range s.statistics.Report(readers.ReportOptions{Changes: changes}).Families {
		reader := Reader{
			UserAgent: row.UserAgent, Family: row.Family, Requests: row.Requests, Bytes: row.Bytes,
			ShareConditional: round(row.ShareConditional), ShareCompressed: round(row.ShareCompressed),
			MedianGap: int64(time.Duration(row.MedianGap).Seconds()), Addresses: row.Addresses, Networks: row.Networks, Score: row.Score, Reasons: row.Reasons,
		}
		if g := s.readers.families[row.Family]; g != nil {
			reader.ServedBytes, reader.Refused = g.bytes, g.refused
			if row.Kind == string(readers.KindService) && row.Addresses > fewAddresses && g.asFleet.Refused > 0 {
				reader.AsFleet = &g.asFleet
			}
		}
		list = append(list, reader)
	}
	return list
}

func round(share float64) float64 { return math.Round(share*1e4) / 1e4 }
