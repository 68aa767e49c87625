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

// Chart shows the requests that origins were asked and those that they were spared: day by day,
// or hour by hour while there are less than three days.
func (c savingsContent) Chart() template.HTML {
	parts, title, label, by := c.Days, "2 January", "2 Jan", "day"
	if len(c.Hours) > 0 {
		parts, title, label, by = c.Hours, "2 January 15:04 UTC", "15:04", "hour"
	}
	columns := make([]column, 0, len(parts))
	labelled := max(len(parts)/5, 1)
	for i, d := range parts {
		col := column{
			lower: d.Polls, rest: d.Spared(),
			title: fmt.Sprintf("%s: %s spared, %s", d.Day.UTC().Format(title), status.Count(d.Spared(), "request"), status.Count(d.Polls, "poll")),
		}
		if i%labelled == labelled/2 {
			col.label = d.Day.UTC().Format(label)
		}
		columns = append(columns, col)
	}
	return chart("Requests by "+by+": polls, and requests that were spared", columns)
}

func (p *Pages) savings(v *visit) error {
	record, err := v.source.Savings(v.r.Context(), maxRows)
	if err != nil {
		return err
	}
	return p.answer(v, http.StatusOK, "savings", "Savings", record, savingsContent{record, record.Origins[:min(len(record.Origins), v.rows())]})
}
