// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"github.com/dustin/go-humanize"
)

// Reader is one reader, or a User-Agent family with all its readers.
type Reader struct {
	UserAgent   string   `json:"user_agent"` // of the latest request
	Family      string   `json:"family"`
	Kind        string   `json:"kind,omitempty"`
	Network     string   `json:"network,omitempty"` // of one reader: IPv4 /24 or IPv6 /48
	FeedID      string   `json:"feed_id,omitempty"` // the aggregator's own name for the feed
	Feeds       int64    `json:"feeds"`
	Subscribers int64    `json:"subscribers"` // as declared in the User-Agent; 0: none
	Score       string   `json:"score"`       // A to F; "-": not judged yet
	Reasons     []string `json:"reasons"`     // the three that matter most for the score
	Judged      int64    `json:"judged_as"`   // how many readers the score assumes, summed over feeds
	Counts
}

// FeedReaders counts all requests for a feed.
type FeedReaders struct {
	Feed        string `json:"feed"`
	Subscribers int64  `json:"subscribers"` // declared by aggregators; each feed ID counts once
	Counts
}

// Counts are the statistics of some requests.
type Counts struct {
	Requests         int64      `json:"requests"`
	Bytes            int64      `json:"bytes"`
	Polls            int64      `json:"polls"`              // requests within 5 s count as one
	ShareConditional float64    `json:"share_conditional"`  // 0 to 1, of GETs
	ShareCompressed  float64    `json:"share_compressed"`   // 0 to 1, of GETs: those that accept compression
	MedianGap        Seconds    `json:"median_gap_seconds"` // between polls; an estimate; 0 after only one poll
	Addresses        int64      `json:"addresses"`          // estimate of different User-Agents at different addresses
	Networks         int64      `json:"networks"`           // estimate
	Methods          Methods    `json:"methods"`
	Answers          Answers    `json:"answers"`
	Conditions       Conditions `json:"conditions"`
	Early            int64      `json:"early"`         // requests before the wait of a 429 was over
	InSkipHours      int64      `json:"in_skip_hours"` // requests
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

// Refusals counts the requests that a shield refused by its rules.
func (a Answers) Refusals() int64 { return a.Limited + a.Refused }

// Conditions are conditional requests, by header field and by the state of the validators.
type Conditions struct {
	IfNoneMatch     int64 `json:"if_none_match"`
	IfModifiedSince int64 `json:"if_modified_since"`
	Current         int64 `json:"current"`
	Earlier         int64 `json:"earlier"`
	Unknown         int64 `json:"unknown"` // validators that the feed never had
}

// ReaderReport has the statistics of readers. Its lists are sorted by requests, most
// first, and are never nil.
type ReaderReport struct {
	Total    Counts        `json:"total"`
	Feeds    []FeedReaders `json:"feeds"`
	Readers  []Reader      `json:"readers"`  // one for each family, network and feed ID
	Families []Reader      `json:"families"` // one for each User-Agent family, over all networks

	Hours [24]int64 `json:"hours"` // requests by hour of day, GMT
}

// Readers is a summary of a [ReaderReport].
type Readers struct {
	Since    time.Time `json:"since,omitzero"`
	Readers  int64     `json:"readers"`
	Requests int64     `json:"requests"`
	Bytes    int64     `json:"bytes"`
	Refused  int64     `json:"refused"` // requests, by the rules of defend

	Judged int64 `json:"judged"` // those with enough requests for a score
	// Of them, those that never send a conditional request.
	Unconditional      int64 `json:"unconditional"`
	UnconditionalBytes int64 `json:"unconditional_bytes"`

	Hours    [24]int64 `json:"hours"`    // requests by hour of day, GMT
	Families []Reader  `json:"families"` // most requests first
}

// Summary summarizes a report.
func (r *ReaderReport) Summary() Readers {
	s := Readers{
		Since: r.Total.First, Readers: int64(len(r.Readers)), Requests: r.Total.Requests, Bytes: r.Total.Bytes,
		Refused: r.Total.Answers.Refusals(), Hours: r.Hours, Families: r.Families,
	}
	for i := range r.Readers {
		reader := &r.Readers[i]
		if reader.Score == "-" {
			continue
		}
		s.Judged++
		if reader.Methods.Get > 0 && reader.ShareConditional == 0 {
			s.Unconditional++
			s.UnconditionalBytes += reader.Bytes
		}
	}
	return s
}

// Sentence describes the readers.
func (r Readers) Sentence() string {
	if r.Requests == 0 {
		return "No reader has asked for a feed yet."
	}
	if r.Refused > 0 {
		return r.conditions() + " " + Count(r.Refused, "request") + Plural(r.Refused, " was", " were") + " refused."
	}
	return r.conditions()
}

// conditions describes the readers and their conditional requests.
func (r Readers) conditions() string {
	text := Count(r.Readers, "reader")
	if kinds := int64(len(r.Families)); kinds < r.Readers && kinds > 0 {
		text += " of " + Count(kinds, "kind")
	}
	text += ", " + Count(r.Requests, "request") + ", " + Size(r.Bytes) + "."
	switch {
	case r.Unconditional > 0:
	case r.Judged == 0:
		return text
	case r.Judged < r.Readers:
		return text + " All who ask regularly send conditional requests."
	default:
		return text + " All of them send conditional requests."
	}
	text += " " + humanize.Comma(r.Unconditional) + " never " + Plural(r.Unconditional, "sends", "send") + " a conditional request"
	if r.Bytes > 0 && r.UnconditionalBytes > 0 {
		text += "; " + Plural(r.Unconditional, "it takes ", "they take ") + Percent(float64(r.UnconditionalBytes)/float64(r.Bytes)) + " of the bytes"
	}
	return text + "."
}
