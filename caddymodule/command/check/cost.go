// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/http"
	"time"

	"github.com/feedpollard/pollard/internal/httpfield"
	"github.com/feedpollard/pollard/policy"
)

const (
	month          = 30 * 24 * time.Hour
	pollsPerMonth  = int64(month / time.Hour)
	assumedChanges = 30 // per month, of a feed whose entries have no usable dates
)

// Cost is what one reader that polls every hour costs in a month of 30 days: bytes of
// header and body, as the answers had them.
type Cost struct {
	Polls       int64 `json:"polls"`
	Changes     int64 `json:"changes"`             // by the rhythm of the entries
	Full        int64 `json:"bytes_per_200"`       // with compression if it is supported
	NotModified int64 `json:"bytes_per_304"`       // estimated if none came
	Estimated   bool  `json:"estimated,omitempty"` // no 304 came
	With304     int64 `json:"bytes_with_304"`
	Without304  int64 `json:"bytes_without_304"`
	Plain       int64 `json:"bytes_without_304_and_compression"`
}

func (x *checker) cost(notModified policy.Answer) *Cost {
	c := &Cost{Polls: pollsPerMonth, Changes: assumedChanges}
	if median := x.document.Rhythm.Median; median > 0 {
		c.Changes = min(pollsPerMonth, int64(month/median))
	}
	c.Full = httpfield.Size(http.StatusOK, x.first.Header) + x.first.Wire
	c.NotModified = httpfield.Size(http.StatusNotModified, notModified.Header)
	if notModified.Status != http.StatusNotModified {
		c.Estimated = true
		fields := make(http.Header)
		for _, name := range []string{"Date", "Etag", "Last-Modified", "Cache-Control", "Vary", "Server"} {
			fields[name] = x.first.Header[name]
		}
		c.NotModified = httpfield.Size(http.StatusNotModified, fields)
	}
	c.With304 = c.Changes*c.Full + (c.Polls-c.Changes)*c.NotModified
	c.Without304 = c.Polls * c.Full
	c.Plain = c.Polls * (httpfield.Size(http.StatusOK, x.first.Header) + int64(len(x.first.Body)))
	return c
}
