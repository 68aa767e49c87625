// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package feedstate

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// A feed has one incident: it begins and ends with a poll, and nothing else changes it.
func TestIncident(t *testing.T) {
	const day = 24 * time.Hour
	good := given(`<rss version="2.0"><channel><title>T</title><item><guid>1</guid></item></channel></rss>`, "Cache-Control", "max-age=21600")
	fast := func(at time.Time) policy.Answer { // ten entries of the last ten minutes, each six hours
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "<item><guid>%d</guid><pubDate>%s</pubDate></item>", at.Unix()-int64(i), at.Add(-time.Duration(i)*time.Minute).Format(time.RFC1123Z))
		}
		return given(`<rss version="2.0"><channel><title>T</title>`+b.String()+"</channel></rss>", "Cache-Control", "max-age=21600")
	}
	bad, held := failed(http.StatusBadGateway, policy.FailureStatus), failed(http.StatusFound, policy.FailureHeld)
	tests := map[string]struct {
		polls func(since time.Duration) policy.Answer // after the first
		days  int
		kind  status.IncidentKind
		over  bool
	}{
		"nothing":                     {func(time.Duration) policy.Answer { return good }, 10, "", false},
		"hours of failures each day":  {func(d time.Duration) policy.Answer { return either(d%day < 8*time.Hour, bad, good) }, 10, "", false},
		"a day of failures":           {func(time.Duration) policy.Answer { return bad }, 3, status.IncidentFailing, false},
		"a redirect that has to wait": {func(time.Duration) policy.Answer { return held }, 3, "", false},
		"fails, and then has to wait": {func(d time.Duration) policy.Answer { return either(d < 4*day, bad, held) }, 6, status.IncidentFailing, false},
		"works again":                 {func(d time.Duration) policy.Answer { return either(d < 3*day, bad, good) }, 8, status.IncidentFailing, true},
		"gone":                        {func(time.Duration) policy.Answer { return failed(http.StatusGone, policy.FailureGone) }, 3, status.IncidentGone, false},
		"loses entries":               {func(d time.Duration) policy.Answer { return fast(epoch.Add(d)) }, 3, status.IncidentLosing, false},
		"loses none for seven days":   {func(d time.Duration) policy.Answer { return either(d < day, fast(epoch.Add(d)), good) }, 12, status.IncidentLosing, true},
		"lost some three days before": {func(d time.Duration) policy.Answer { return either(d < day, fast(epoch.Add(d)), good) }, 4, status.IncidentLosing, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := newLife(t)
			l.poll(good)
			var began time.Time
			for !l.state.Ended && l.now < time.Duration(test.days)*day {
				l.poll(test.polls(l.now))
				if i := l.state.Feed.Incident; i.Kind != "" && began.IsZero() {
					began = i.Began
				} else if !i.Began.Equal(began) {
					t.Errorf("it began at %v, and now at %v", began, i.Began)
				}
			}
			if i := l.state.Feed.Incident; i.Kind != test.kind || i.Kind != "" && i.Over(epoch.Add(l.now)) != test.over {
				t.Errorf("%+v after %v", i, l.now)
			}
		})
	}
}

func either[T any](condition bool, yes, no T) T {
	if condition {
		return yes
	}
	return no
}
