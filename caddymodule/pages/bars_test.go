// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"encoding/xml"
	"strings"
	"testing"

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
