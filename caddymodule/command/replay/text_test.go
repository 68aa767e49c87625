// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/feedpollard/pollard/internal/readers"
)

func TestTextFitsATerminal(t *testing.T) {
	var log strings.Builder
	for i := range 600 {
		v := visit{at: monday.Add(time.Duration(i) * 10 * time.Minute), status: 200, bytes: 12_000, agent: strings.Repeat("Ä", 1+i%30) + " very long and\x1b[31m/1.0"}
		log.WriteString(v.String())
	}
	log.WriteString("nonsense\n")
	o := options(t)
	o.Limits = func(*http.Request) readers.Limits { return readers.Limits{RequireCompression: true} }
	o.ChangeEvery = 720 * time.Hour
	var b strings.Builder
	if err := run(t, log.String(), o).WriteText(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); n > 100 || strings.TrimRight(line, " ") != line || strings.ContainsRune(line, 0x1b) {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for _, want := range []string{
		"600 requests for /podcast.rss from 2024-03-25 12:00 to 2024-03-29 15:50 GMT (4 days)",
		"RSS 2.0, 40 entries", "it changes every 30 days", "406 Not Acceptable", "1 line is malformed.",
		"and 10 more, with 200 requests", "refuses compression",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestChange(t *testing.T) {
	tests := []struct {
		before, after int64
		want          string
	}{
		{100, 50, "-50.0 %"}, {100, 150, "+50.0 %"}, {1000, 5, "-99.50 %"}, {1_000_000, 5, "-99.999 %"}, {0, 5, ""},
	}
	for _, tt := range tests {
		if got := change(tt.before, tt.after); got != tt.want {
			t.Errorf("from %d to %d: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}

// Bytes that rise or fall because the given feed is not as large as the log's are explained.
func TestFeedOfAnotherSize(t *testing.T) {
	o := options(t)
	for share, want := range map[float64]string{0.9: "whole answers have +11.1 % bytes", 1: "", 1.25: "whole answers have -20.0 % bytes"} {
		log := visit{at: monday, status: 304}.String() + hourly(1, visit{status: 200, bytes: int(share * float64(len(o.Feed))), agent: "NewsReader/1.0"})
		var b strings.Builder
		if err := run(t, log, o).WriteText(&b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, want) || want == "" && strings.Contains(got, "another size") {
			t.Errorf("%v of the size: %s", share, got)
		}
	}
}
