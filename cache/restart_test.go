// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// The record of a decision says what put a poll off, in the words of the feed.
func TestPostponementKeepsTheRawHint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := `<rss version="2.0"><channel><title>T</title><skipHours><hour>13</hour><hour>14</hour></skipHours><item><title>1</title></item></channel></rss>`
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(body, "ETag", `"1"`) }).open()
		g.get(feedURL)
		time.Sleep(3*time.Hour + time.Minute)
		g.get(feedURL)
		account, err := g.Status(t.Context(), feedURL)
		if err != nil || account.Winner != policy.HintSkipHours || account.NextPoll.Hour() != 15 {
			t.Fatalf("it waits until %v for %s, %v", account.NextPoll, account.Winner, err)
		}
		for _, term := range account.Considered {
			if term.Hint == policy.HintSkipHours && (term.Raw != "13,14" || !term.Used || term.Seconds == 0) {
				t.Errorf("considered %+v", term)
			}
		}
	})
}

// A claim moves the next poll by the plan in force, also of a feed that backs off and whose poll
// crashes.
func TestCrashOfAPrefetchedPollKeepsTheBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(2, ""), "ETag", `"v"`) })
		g.settings.Prefetch, g.settings.Feeds = true, []string{feedURL}
		g.open()
		time.Sleep(time.Minute)
		g.origin.answers(func(policy.Ask) policy.Answer { return failed(500, policy.FailureStatus) })
		for g.origin.polls() < 4 {
			time.Sleep(time.Minute)
		}
		account, err := g.Status(t.Context(), feedURL)
		if err != nil {
			t.Fatal(err)
		}
		plan := time.Until(account.NextPoll)
		g.store.refuse(errors.New("the machine has stopped"), "Commit")
		for g.origin.polls() < 5 {
			time.Sleep(time.Minute)
		}
		g.store.refuse(nil)
		g.restart()
		for g.origin.polls() < 6 {
			time.Sleep(time.Minute)
		}
		at := g.asked(feedURL)
		if gap := at[5].Sub(at[4]); gap < plan {
			t.Errorf("polled again %v after the crash, want the back-off of %v kept", gap, plan)
		}
	})
}

// A 304 needs no body, even if nothing is in memory.
func TestNotModifiedReadsNoBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGateway(t, func(policy.Ask) policy.Answer { return ok(rss(1, ""), "ETag", `"1"`) }).open()
		tag := g.get(feedURL).Header().Get("ETag")
		g.restart()
		g.store.refuse(errAway, "Body")
		if w := g.get(feedURL, "If-None-Match", tag); w.Code != 304 {
			t.Errorf("got %d", w.Code)
		}
		if w := g.get(feedURL); w.Code != 503 {
			t.Errorf("got %d without the body, which is in memory", w.Code)
		}
	})
}

// The store believes a plan for more than a week: skipDays and skipHours put off a poll that a pause, or the end of a
// show, has put off already.
func TestRestartKeepsAPollThatIsPutOffTwice(t *testing.T) {
	const days = `<skipDays><day>Monday</day><day>Tuesday</day><day>Wednesday</day></skipDays>`
	hours := "<skipHours>"
	for hour := range 24 {
		if hour != 9 {
			hours += fmt.Sprintf("<hour>%d</hour>", hour)
		}
	}
	hours += "</skipHours>"
	for name, tt := range map[string]struct{ channel, retryAfter string }{
		"a show that is complete": {`<itunes:complete>yes</itunes:complete>` + days + hours, ""},
		"Retry-After":             {days + hours, "604800"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // it begins on a Monday at 10
				body := `<rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>T</title>` + tt.channel + `<item><title>1</title></item></channel></rss>`
				g := newGateway(t, func(policy.Ask) policy.Answer { return ok(body, "ETag", `"1"`, "Retry-After", tt.retryAfter) }).open()
				g.get(feedURL)
				account, err := g.Status(t.Context(), feedURL)
				if err != nil || time.Until(account.NextPoll) < 8*24*time.Hour+time.Hour {
					t.Fatalf("the next poll is at %v, %v", account.NextPoll, err)
				}
				time.Sleep(71*time.Hour + 30*time.Minute) // to an hour that is not skipped
				g.restart()
				if g.get(feedURL); g.origin.polls() != 1 {
					t.Errorf("it was polled at %v, and not at %v", time.Now(), account.NextPoll)
				}
			})
		})
	}
}
