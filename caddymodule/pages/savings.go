// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"net/http"
	"slices"

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
}

func (p *Pages) savings(v *visit) error {
	record, err := p.Source.Savings(v.r.Context(), &v.at.Viewer, jsonRows)
	if err != nil {
		return err
	}
	days := slices.Clone(record.Days[max(len(record.Days)-pageDays, 0):])
	slices.Reverse(days)
	return p.answer(v, http.StatusOK, "savings", "Savings", record, savingsContent{record, days, record.Origins[:min(len(record.Origins), pageRows)]})
}
