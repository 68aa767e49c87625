// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"html/template"

	"github.com/feedpollard/pollard/internal/status"
)

// maxReaders is how many readers a page names in each of its lists.
const maxReaders = 50

// readersContent is what the page of readers shows.
type readersContent struct{ status.Readers }

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

// BytesShare is the share that a reader has in all bytes.
func (c readersContent) BytesShare(r status.Reader) string {
	if c.Bytes == 0 {
		return ""
	}
	return status.Percent(float64(r.Bytes) / float64(c.Bytes))
}

func (p *Pages) readers(v *visit) error {
	record, err := v.source.Readers(v.r.Context(), maxReaders)
	if err != nil {
		return err
	}
	if record.ByRequests == nil {
		record.ByRequests = []status.Reader{}
	}
	if record.ByBytes == nil {
		record.ByBytes = []status.Reader{}
	}
	return p.answer(v, "readers", "Readers", record, readersContent{record})
}
