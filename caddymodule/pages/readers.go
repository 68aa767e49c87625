// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"cmp"
	"net/http"
	"slices"

	"github.com/feedpollard/pollard/internal/status"
)

type readersContent struct {
	status.Readers
	Sort string // bytes, requests or refused
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

func (p *Pages) readers(v *visit) error {
	record, err := p.Source.Readers(v.r.Context(), &v.at.Viewer)
	if err != nil {
		return err
	}
	order := readerOrders[0]
	for _, o := range readerOrders {
		if o.Name == v.r.URL.Query().Get("sort") {
			order = o
		}
	}
	families := slices.SortedStableFunc(slices.Values(record.Families), func(a, b status.Reader) int { return cmp.Compare(order.by(b), order.by(a)) })
	record.Families = families[:min(len(families), jsonRows)]
	return p.answer(v, http.StatusOK, "readers", "Readers", record, readersContent{record, order.Name, families[:min(len(families), pageRows)]})
}
