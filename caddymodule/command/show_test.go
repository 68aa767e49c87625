// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/internal/status/statustest"
	"github.com/feedpollard/pollard/policy"
)

func TestFeedText(t *testing.T) {
	old := time.Local
	time.Local = time.UTC
	defer func() { time.Local = old }()
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	minutes := int64(120)
	f := status.Feed{
		URL: "https://ann:s3cret@a.example/feed", State: "failing", NextPoll: now.Add(2 * time.Hour), Winner: policy.HintBackOff,
		Considered: []policy.Term{{Hint: policy.HintBackOff, Seconds: 14400, Used: true}}, Hints: policy.Hints{TTL: &minutes},
		LastPoll: now.Add(-2 * time.Hour), LastStatus: 404, LastResult: "failed", Pause: &status.Pause{URL: "https://ann:s3cret@a.example/other"}, LastError: "status 404\x1b[31m", Failures: 2,
		Version: 3, VersionSince: now.Add(-26 * time.Hour), ContentType: "application/rss+xml", Entries: 20, Size: 2048,
		Polls: []status.Poll{
			{At: now.Add(-4 * time.Hour), Result: "unsent"},
			{At: now.Add(-2 * time.Hour), Status: 404, Result: "failed", Bytes: 10, Took: status.Seconds(30 * time.Millisecond)},
		},
	}
	var b strings.Builder
	if err := writeFeed(&b, f, now); err != nil {
		t.Fatal(err)
	}
	const want = `https://***@a.example/feed
Failing. The last 2 polls failed (404 Not Found). Next try: 10:00, then less often. Readers keep getting the version of yesterday 06:00.

next poll   2026-11-21 10:00:00 UTC (in 2 h)
refused     https://***@a.example/other
last poll   2026-11-21 06:00:00 UTC (2 h ago): 404, failed: status 404�[31m
version     the 3rd, since 2026-11-20 06:00:00 UTC (26 h ago), 20 entries, 2.0 kB, application/rss+xml
last asked  never
answered    0 % of the last 2 polls

The last polls:
  2026-11-21 06:00:00  2 h ago  404  failed  10 B  30ms
  2026-11-21 04:00:00  4 h ago  -    unsent  0 B   0s

The document says:
  ttl  120  minutes for which a copy is good

Considered (* shaped the result):
* failures  4h  a pause that doubles with each failure
`
	// Where the local zone is UTC, times of sentences say so.
	if got := strings.NewReplacer("10:00 UTC,", "10:00,", "06:00 UTC.", "06:00.").Replace(b.String()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// Commands name every hint by the words that the log, pages and docs have.
func TestHintsInWords(t *testing.T) {
	var e explanation
	for _, name := range status.HintNames() {
		e.Decision.Considered = append(e.Decision.Considered, policy.Term{Hint: name, Raw: name})
	}
	var b strings.Builder
	e.writeConsidered(&b)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")[1:]
	for i, name := range status.HintNames() {
		f := status.Feed{Winner: name}
		if want := "  " + status.HintShort(name) + "  "; !strings.HasPrefix(lines[i], want) || strings.Contains(lines[i], "given:") || f.Why() != status.HintShort(name) {
			t.Errorf("%s: %q, and in the list %q, want %q", name, lines[i], f.Why(), want)
		}
	}
}

// Nothing that `feeds show` and `feeds explain` print contradicts another fact of the feed.
func TestTextsAgreeWithFacts(t *testing.T) {
	now, said := time.Now(), make(map[string]bool)
	check := func(name string, f *status.Feed, text string, now time.Time) {
		text, _, _ = strings.Cut(text, "\nConsidered") // what follows is a table of all hints
		if wrong := statustest.Contradiction(f, text, now); wrong != "" && !said[f.Winner+wrong] {
			said[f.Winner+wrong] = true
			t.Errorf("%s: %s: %s", name, wrong, text)
		}
	}
	for name, f := range statustest.Few(now) {
		var b strings.Builder
		if err := writeFeed(&b, f, now); err != nil {
			t.Fatal(err)
		}
		check(name, &f, b.String(), now)
	}
	for c := range statustest.Cases(now) {
		x := subject{rules: c.Rules, history: c.History, answer: c.Answer, document: c.Document}
		if c.Answer.Err != nil {
			x.problem = c.Answer.Err.Error()
		}
		e, d := x.explain()
		var b strings.Builder
		if err := e.writeText(&b, d); err != nil {
			t.Fatal(err)
		}
		f := status.Decided(d)
		f.LastStatus, f.LastFailure = c.Answer.Status, c.Answer.Failure
		f.Failures = c.History.Update(c.Answer, c.Document, false).Failures
		check(c.Name, &f, b.String(), now)
	}
}

// Everything that a document can say about polling is printed. The feed's own address and the beginning of its period
// are not about that alone.
func TestEveryHintIsPrinted(t *testing.T) {
	minutes := int64(60)
	hints := reflect.TypeFor[policy.Hints]()
	for i := range hints.NumField() {
		field := hints.Field(i)
		if field.Name == "Self" || field.Name == "SyBase" {
			continue
		}
		var e explanation
		value := reflect.ValueOf(&e.Hints).Elem().Field(i)
		for _, sample := range []any{&minutes, []int{1}, []string{"Monday"}, "daily", true, &policy.UpdateFrequency{Text: "daily"}} {
			if v := reflect.ValueOf(sample); v.Type() == field.Type {
				value.Set(v)
			}
		}
		if facts := e.hintFacts(); len(facts) != 1 || value.IsZero() {
			t.Errorf("%s, set to %v, is printed as %v", field.Name, value, facts)
		}
	}
}
