// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"encoding/xml"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
)

// The bars are well-formed, stay within their picture, and say in words what they show.
func TestBars(t *testing.T) {
	var polls []status.Poll
	for i := range 40 { // more than there is room for
		polls = append(polls, status.Poll{Result: []status.Result{status.ResultNew, status.ResultUnchanged, status.ResultFailed, "later"}[i%4], Bytes: 1 << (i % 63)})
	}
	got := string(bars(polls))
	if !strings.Contains(got, "The last 32 polls: 8 new, 8 unchanged, 16 failed") {
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
	if got := bars(nil); got != "" {
		t.Errorf("of no polls: %s", got)
	}
}

// A timeline names the time of its last poll, and that of its first one if it is another.
func TestTimeline(t *testing.T) {
	now := time.Now()
	polls := []status.Poll{{At: now.Add(-time.Hour)}, {At: now.Add(-time.Minute)}}
	if got := string(pollsChart(polls)); !strings.Contains(got, ">1 h ago</text>") || !strings.Contains(got, ">60 s ago</text>") {
		t.Errorf("of two polls: %s", got)
	}
	if got := string(pollsChart(polls[:1])); strings.Count(got, "1 h ago") != 1 || !strings.Contains(got, "The last poll: ") {
		t.Errorf("of one poll: %s", got)
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
