// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package readers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/version"
	"github.com/feedpollard/pollard/internal/status"
)

// visits are a reader's requests at a steady pace.
func visits(n int, every time.Duration, change func(i int, r *Request)) []Request {
	var list []Request
	for i := range n {
		r := conditional(poll(start().Add(time.Duration(i)*every), "Reader/1", "192.0.2.1"))
		if i == 0 {
			r = poll(r.Time, r.UserAgent, "192.0.2.1")
		}
		if change != nil {
			change(i, &r)
		}
		list = append(list, r)
	}
	return list
}

func whole(_ int, r *Request) { *r = poll(r.Time, r.UserAgent, r.Client.String()) }

func TestScore(t *testing.T) {
	const monthly = 30 * 24 * time.Hour
	for _, tc := range []struct {
		name     string
		requests []Request
		changes  time.Duration
		score    string
		reasons  []string // each is in the reason at its place
	}{
		{"hourly, conditional", visits(100, time.Hour, nil), monthly, "A", []string{"asks once an hour, 99 % of its requests conditional"}},
		{"59 minutes, jitter", visits(100, 59*time.Minute, nil), monthly, "A", []string{"once an hour"}},
		{"half-hourly, conditional", visits(100, 31*time.Minute, nil), monthly, "A", []string{"asks every 31 minutes; the feed changes once a month"}},
		{"every 4 minutes, conditional", visits(100, 4*time.Minute, nil), monthly, "C", []string{"asks every 4 minutes; the feed changes once a month"}},
		{"every 6 minutes, a feed that changes as often", visits(100, 6*time.Minute, nil), 6 * time.Minute, "A", nil},
		{"every 4 minutes, never conditional", visits(1000, 4*time.Minute, whole), monthly, "F", []string{"asks every 4 minutes; the feed changes once a month", "never sends a conditional request"}},
		{"hourly, never conditional", visits(100, time.Hour, whole), 0, "C", []string{"never sends a conditional request"}},
		{"every 9 hours, never conditional", visits(30, 9*time.Hour, whole), 0, "B", []string{"never sends a conditional request"}},
		{"once a day, never conditional", visits(30, 24*time.Hour, whole), 0, "A", nil},
		{"AntennaPod: now and then unconditional", visits(100, 2*time.Hour, func(i int, r *Request) {
			r.UserAgent = "AntennaPod/3.3.2"
			if i%10 == 0 {
				whole(i, r)
			}
		}), monthly, "A", []string{"asks every 2 hours, 90 % of its requests conditional"}},
		{"refuses compression", append(visits(100, 2*time.Hour, func(_ int, r *Request) {
			r.Compression = false
			r.Bytes *= 8
			r.Status = 200
		}), visits(1, 0, whole)...), 0, "B", []string{"refuses compression"}},
		{"ignores 429", visits(100, time.Hour, func(i int, r *Request) {
			if i%2 == 1 {
				r.Status, r.Early = 429, true
			}
		}), 0, "B", []string{"ignores 429: asked 50 times before the wait was over"}},
		{"obeys 429", visits(100, time.Hour, func(i int, r *Request) {
			if i%2 == 1 {
				r.Status = 429
			}
		}), 0, "A", nil},
		{"invents validators", visits(100, 3*time.Hour, func(_ int, r *Request) { r.Validators = version.Unknown }), 0, "D", []string{"never sends a conditional request", "invents validators"}},
		{"skip hours", visits(100, 6*time.Hour, func(_ int, r *Request) { r.SkipHours = Hours{0, 6, 12} }), 0, "A", []string{"asks in the hours that the feed rules out (75 % of its requests)"}},
		{"skip hours, daily, a library", visits(100, 24*time.Hour, func(i int, r *Request) {
			whole(i, r)
			r.SkipHours, r.UserAgent = Hours{0}, "okhttp/4"
		}), 0, "B", []string{"rules out", "HTTP library"}},
		{"no name", visits(100, 6*time.Hour, func(_ int, r *Request) { r.UserAgent = "" }), 0, "A", []string{"does not say who it is"}},
		{"a library", visits(100, 6*time.Hour, func(_ int, r *Request) { r.UserAgent = "Go-http-client/1.1" }), 0, "A", []string{"gives only the name of its HTTP library"}},
		{"few requests", visits(9, time.Minute, whole), 0, "-", []string{"not judged yet (9 of 10 visits)"}},
		{"many requests, few polls", visits(100, 0, whole), 0, "-", []string{"not judged yet (1 of 10 visits)"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := NewStatistics(0)
			for _, r := range tc.requests {
				l.Record(r)
			}
			r := l.Report(ReportOptions{Changes: func(string) time.Duration { return tc.changes }})
			for _, row := range []status.Reader{r.Readers[0], r.Families[0]} {
				if row.Score != tc.score || len(row.Reasons) < len(tc.reasons) || len(row.Reasons) > 3 {
					t.Fatalf("%s %q, want %s %q", row.Score, row.Reasons, tc.score, tc.reasons)
				}
				for i, want := range tc.reasons {
					if !strings.Contains(row.Reasons[i], want) {
						t.Errorf("reason %d is %q, want %q", i, row.Reasons[i], want)
					}
				}
			}
		})
	}
}

// Who is judged as one, and who is not.
func TestJudgedAs(t *testing.T) {
	type readers struct {
		agent   func(i int) string
		address func(i int) string
		n       int
		whole   bool
	}
	same := func(agent string) func(int) string { return func(int) string { return agent } }
	nat := same("192.0.2.1")
	farm := func(i int) string { return fmt.Sprintf("192.0.2.%d", 1+i) }
	everywhere := func(i int) string { return fmt.Sprintf("10.%d.0.1", i) }
	for _, tc := range []struct {
		name             string
		readers          readers
		reader, family   string // score
		readerN, family2 int64
	}{
		{"20 versions of a phone app behind one NAT, hourly each", readers{func(i int) string { return fmt.Sprintf("Pod/%d (Android 14)", i) }, nat, 20, false}, "A", "A", 20, 20},
		{"20 customers of a provider, hourly each", readers{same("Pod/1 (Android 14)"), farm, 20, false}, "A", "A", 20, 20},
		{"20 customers with an app that names no system", readers{same("Pod/1"), farm, 20, false}, "A", "A", 20, 20},
		{"a library in 20 programs", readers{same("okhttp/4.9.3"), farm, 20, false}, "A", "A", 20, 20},
		{"an aggregator's 20 machines, never conditional", readers{same("Pod/1"), farm, 20, true}, "F", "F", 1, 1},
		{"an aggregator that declares subscribers", readers{same("Pod/1 (9 subscribers)"), farm, 20, false}, "C", "C", 1, 1},
		{"a self-hosted program in 20 places", readers{same("Pod/1"), everywhere, 20, true}, "C", "C", 1, 20},
		{"a self-hosted aggregator in 20 places", readers{same("Pod/1 (1 subscribers)"), everywhere, 20, false}, "A", "A", 1, 20},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := NewStatistics(0)
			for hour := range 48 {
				for i := range tc.readers.n {
					r := poll(start().Add(time.Duration(hour)*time.Hour+time.Duration(i)*3*time.Minute), tc.readers.agent(i), tc.readers.address(i))
					if hour > 0 && !tc.readers.whole {
						r = conditional(r)
					}
					l.Record(r)
				}
			}
			r := l.Report(ReportOptions{})
			reader, family := r.Readers[0], r.Families[0]
			if reader.Score != tc.reader || family.Score != tc.family {
				t.Errorf("reader %s %q, family %s %q; want %s and %s", reader.Score, reader.Reasons, family.Score, family.Reasons, tc.reader, tc.family)
			}
			near := func(got, want int64) bool { return got == want || want > 1 && got*4 > want*3 && got*3 < want*5 }
			if !near(reader.Judged, tc.readerN) || !near(family.Judged, tc.family2) {
				t.Errorf("judged as %d and %d, want about %d and %d", reader.Judged, family.Judged, tc.readerN, tc.family2)
			}
		})
	}
}

// A reader of many feeds is judged by all its requests, at each feed's pace. Two readers of many
// feeds are two.
func TestScoreOverFeeds(t *testing.T) {
	for readers, want := range map[int]string{1: "asks once an hour, ", 2: ", each of about 2 readers"} {
		l := NewStatistics(0)
		for feed := range 20 {
			for i := range 6 * readers {
				r := poll(start().Add(time.Duration(i)*time.Hour/time.Duration(readers)+time.Duration(feed)*time.Second), "Reader/1", fmt.Sprintf("192.0.2.%d", 1+i%readers))
				if i >= readers {
					r = conditional(r)
				}
				r.Feed = fmt.Sprintf("https://example.org/%d", feed)
				l.Record(r)
			}
		}
		row := l.Report(ReportOptions{}).Readers[0]
		if row.Feeds != 20 || row.Score != "A" || !strings.Contains(strings.Join(row.Reasons, ";"), want) {
			t.Errorf("%d readers: %d feeds, every %v, %s %q, want %q", readers, row.Feeds, time.Duration(row.MedianGap), row.Score, row.Reasons, want)
		}
	}
}
