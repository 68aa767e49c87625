// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/feedpollard/pollard/internal/status"
)

func TestReadersSentence(t *testing.T) {
	for _, tt := range []struct {
		r    Readers
		want string
	}{
		{Readers{}, "No reader has asked for a feed yet."},
		{Readers{Readers: 1, Requests: 1, Bytes: 300}, "1 reader, 1 request, 300 B."},
		{Readers{Readers: 2, Judged: 2, Requests: 9, Bytes: 300}, "2 readers, 9 requests, 300 B. All of them send conditional requests."},
		{Readers{Readers: 2, Judged: 1, Requests: 9, Bytes: 300}, "2 readers, 9 requests, 300 B. All who ask regularly send conditional requests."},
		{Readers{Readers: 41, Requests: 1000, Bytes: 1000, Unconditional: 12, UnconditionalBytes: 880}, "41 readers, 1,000 requests, 1.0 kB. 12 never send a conditional request; they take 88 % of the bytes."},
		{Readers{Readers: 2, Requests: 9, Bytes: 1000, Unconditional: 1, UnconditionalBytes: 1}, "2 readers, 9 requests, 1.0 kB. 1 never sends a conditional request; it takes less than 1 % of the bytes."},
	} {
		if got := tt.r.Sentence(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestSavingsSentence(t *testing.T) {
	for _, tt := range []struct {
		s    Savings
		want string
	}{
		{Savings{}, "No reader has asked for a feed yet."},
		{Savings{Total: Traffic{Requests: 1204331 + 5, Polls: 5, Served: 96e9 + 3, Fetched: 3}, Days: make([]DayTraffic, 30)}, "Sites were spared 1,204,331 requests and 96 GB in 30 days."},
		{Savings{Total: Traffic{Requests: 1, Polls: 4, Fetched: 9}, Days: make([]DayTraffic, 1)}, "Sites were spared 0 requests and 0 B in 1 day."},
	} {
		if got := tt.s.Sentence(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

// A sparkline is well-formed, within its picture, and says in words what it shows.
func TestSparkline(t *testing.T) {
	var polls []status.Poll
	for i := range 40 { // more than there is room for
		polls = append(polls, status.Poll{Result: []status.Result{status.ResultNew, status.ResultUnchanged, status.ResultFailed, "later"}[i%4], Bytes: 1 << (i % 63)})
	}
	got := string(sparkline(polls))
	if !strings.Contains(got, "Last 32 polls: 8 new, 8 unchanged, 16 failed") {
		t.Errorf("got %s", got)
	}
	if err := xml.Unmarshal([]byte(got), new(struct{})); err != nil {
		t.Error(err)
	}
	if strings.Contains(got, "M-") || strings.Contains(got, " -") {
		t.Errorf("it leaves its picture: %s", got)
	}
	if len(got) > 1000 {
		t.Errorf("it has %d bytes", len(got))
	}
	if got := sparkline(nil); got != "" {
		t.Errorf("of no polls: %s", got)
	}
}

func TestChart(t *testing.T) {
	for _, columns := range [][]column{nil, {{}}, {{rest: 1, label: "<b>", title: `"&`}}, {{lower: 1 << 62, rest: 1}, {rest: -5}}} {
		got := string(chart(`"<b>`, columns))
		if len(columns) == 0 && got == "" {
			continue
		}
		if err := xml.Unmarshal([]byte(got), new(struct{})); err != nil || strings.Contains(got, "<b>") {
			t.Errorf("%v: %v in %s", columns, err, got)
		}
	}
	for n, want := range map[int64]int64{0: 2, 1: 2, 3: 5, 41836: 50000, 50001: 100000, 99999: 100000, 100001: 200000} {
		if got := roundUp(n); got != want {
			t.Errorf("above %d comes %d, want %d", n, got, want)
		}
	}
}
