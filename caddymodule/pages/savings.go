// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"html/template"
	"net/http"

	"github.com/feedpollard/pollard/internal/status"
)

// A page names tenRows origins or readers, and on demand as many as maxRows.
const (
	tenRows = 10
	maxRows = 500
)

func (v *visit) rows() int {
	if v.r.URL.Query().Has("all") {
		return maxRows
	}
	return tenRows
}

type savingsContent struct {
	status.Savings
	Rows []status.OriginTraffic
}

// Chart shows the requests that origins were asked and those that they were spared, day by day.
func (c savingsContent) Chart() template.HTML {
	columns := make([]column, 0, len(c.Days))
	labelled := max(len(c.Days)/5, 1)
	for i, d := range c.Days {
		col := column{
			lower: d.Polls, rest: d.Spared(),
			title: fmt.Sprintf("%s: %s spared, %s", d.Day.UTC().Format("2 January"), status.Count(d.Spared(), "request"), status.Count(d.Polls, "poll")),
		}
		if i%labelled == labelled/2 {
			col.label = d.Day.UTC().Format("2 Jan")
		}
		columns = append(columns, col)
	}
	return chart("Requests by day: polls, and requests that were spared", columns)
}

func (p *Pages) savings(v *visit) error {
	record, err := v.source.Savings(v.r.Context(), maxRows)
	if err != nil {
		return err
	}
	return p.answer(v, http.StatusOK, "savings", "Savings", record, savingsContent{record, record.Origins[:min(len(record.Origins), v.rows())]})
}
