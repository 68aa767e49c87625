// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"slices"

	"github.com/feedpollard/pollard/internal/status"
)

type readersContent struct {
	status.Readers
	Sort string // bytes, requests or refused
	All  bool
	Rows []status.Reader
}

// readerOrders are the orders of readers, the default first, with what they sort by.
var readerOrders = []struct {
	Name, Text string
	by         func(status.Reader) int64
}{
	{"bytes", "bytes", func(r status.Reader) int64 { return r.Bytes }},
	{"requests", "requests", func(r status.Reader) int64 { return r.Requests }},
	{"refused", "refused requests", func(r status.Reader) int64 { return r.Answers.Refusals() }},
}

// Orders are the orders of readers.
func (c readersContent) Orders() any { return readerOrders }

// Chart shows the requests by hour of day.
func (c readersContent) Chart() template.HTML {
	columns := make([]column, 0, len(c.Hours))
	for hour, n := range c.Hours {
		col := column{rest: n, title: fmt.Sprintf("%02d:00 to %02d:59 GMT: %s", hour, hour, status.Count(n, "request"))}
		if hour%6 == 0 {
			col.label = fmt.Sprintf("%02d:00", hour)
		}
		columns = append(columns, col)
	}
	return chart("Requests by hour of day, GMT", columns)
}

func (p *Pages) readers(v *visit) error {
	record, err := v.source.Readers(v.r.Context())
	if err != nil {
		return err
	}
	c := readersContent{Sort: readerOrders[0].Name, All: v.r.URL.Query().Has("all")}
	by := readerOrders[0].by
	for _, order := range readerOrders {
		if order.Name == v.r.URL.Query().Get("sort") {
			c.Sort, by = order.Name, order.by
		}
	}
	families := append([]status.Reader{}, record.Families...)
	slices.SortStableFunc(families, func(a, b status.Reader) int { return cmp.Compare(by(b), by(a)) })
	record.Families = families[:min(len(families), maxRows)]
	c.Readers, c.Rows = record, families[:min(len(families), v.rows())]
	return p.answer(v, http.StatusOK, "readers", "Readers", record, c)
}
