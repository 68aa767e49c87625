// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/feedpollard/pollard/internal/status"
)

const (
	pageDays = 14  // days on a page
	pageRows = 50  // origins or readers on a page
	jsonRows = 500 // in its JSON
)

type savingsContent struct {
	status.Savings
	Newest []status.DayTraffic // the newest first
	Rows   []status.OriginTraffic
	After  int // how many origins are on the pages before
}

func (c savingsContent) First() int { return c.After + 1 }
func (c savingsContent) Last() int  { return c.After + len(c.Rows) }

func (p *Pages) savings(v *visit) error {
	record, err := p.Source.Savings(v.r.Context(), &v.at.Viewer, jsonRows)
	if err != nil {
		return err
	}
	days := slices.Clone(record.Days[max(len(record.Days)-pageDays, 0):])
	slices.Reverse(days)
	after, _ := strconv.Atoi(v.r.URL.Query().Get("after")) // anything but a number is the first page
	if after < 0 || after >= len(record.Origins) {
		after = 0
	}
	rows := record.Origins[after:min(after+pageRows, len(record.Origins))]
	return p.answer(v, http.StatusOK, "savings", "Savings", record, savingsContent{record, days, rows, after})
}
