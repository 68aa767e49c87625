// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

// observer keeps the polls that are reported.
type observer struct {
	mu    sync.Mutex
	polls []cache.Poll
}

func (o *observer) observe(p cache.Poll) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.polls = append(o.polls, p)
}

// last is the last poll.
func (o *observer) last(t *testing.T) cache.Poll {
	t.Helper()
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.polls) == 0 {
		t.Fatal("nothing was reported")
	}
	return o.polls[len(o.polls)-1]
}

func TestObservedPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var answer policy.Answer
		seen := new(observer)
		core, lines := zapobserver.New(zap.DebugLevel)
		g := newGateway(t, func(policy.Ask) policy.Answer { return answer })
		g.settings.Log = zap.New(core)
		g.settings.Observe, g.settings.Feeds = seen.observe, []string{feedURL} // or it would be forgotten before it works
		g.open()
		for _, tt := range []struct {
			name   string
			answer policy.Answer
			want   cache.Poll
		}{
			{"never worked", failed(404, policy.FailureNotFound), cache.Poll{Result: status.ResultFailed, Failure: policy.FailureNotFound, Failures: 1, IsFeed: true}},
			{"nor again", failed(500, policy.FailureStatus), cache.Poll{Result: status.ResultFailed, Failure: policy.FailureStatus, Before: policy.FailureNotFound, Failures: 2, IsFeed: true}},
			{"first version", ok(rss(2, "")), cache.Poll{Result: status.ResultNew, Before: policy.FailureStatus, Updated: true, First: true, Entries: 2, Recovered: 2, IsFeed: true}},
			{"unchanged", ok(rss(2, "")), cache.Poll{Result: status.ResultUnchanged, Entries: 2, IsFeed: true}},
			{"second version", ok(rss(3, "")), cache.Poll{Result: status.ResultNew, Updated: true, Entries: 3, IsFeed: true}},
			{"fails", failed(503, policy.FailureStatus), cache.Poll{Result: status.ResultFailed, Failure: policy.FailureStatus, Failures: 1, Entries: 3, IsFeed: true}},
		} {
			answer = tt.answer
			g.get(feedURL)
			got := seen.last(t)
			if got.URL != feedURL || got.Status != tt.answer.Status || !got.Next.After(time.Now()) || (got.Err != nil) != (got.Failure != "") {
				t.Errorf("%s: %+v", tt.name, got)
			}
			polled := lines.FilterMessage("polled").All()
			if lines.TakeAll(); len(polled) != 1 || got.Winner == "" || polled[0].ContextMap()["hint"] != status.HintShort(got.Winner) {
				t.Errorf("%s: %s decided, and the log says %v", tt.name, got.Winner, polled)
			}
			got.URL, got.Status, got.Next, got.Err, got.Took, got.Winner = "", 0, time.Time{}, nil, 0, ""
			if got != tt.want {
				t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
			}
			time.Sleep(25 * time.Hour)
		}
	})
}

// The log has the details that an error leaves out, and the URL of a feed that its readers know.
func TestLogHasDetails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := zapobserver.New(zap.InfoLevel)
		answer := failed(0, policy.FailureInternal)
		answer.Detail = "https://origin.test/: the gateway failed: panic: at the answer"
		g := newGateway(t, func(policy.Ask) policy.Answer { return answer })
		g.settings.Log, g.settings.Feeds = zap.New(core), []string{feedURL}
		g.settings.LogName = func(key string) string { return strings.TrimPrefix(key, "https:") }
		g.open()
		g.get(feedURL)
		synctest.Wait()
		polled := lines.FilterMessage("polled").All()
		if len(polled) != 1 || polled[0].ContextMap()["detail"] != answer.Detail || polled[0].ContextMap()["feed"] != strings.TrimPrefix(feedURL, "https:") {
			t.Errorf("the log says %+v", polled)
		}
	})
}

// The log says which feeds a web page names that is configured as one.
func TestLogNamesTheFeedsOfAPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := zapobserver.New(zap.WarnLevel)
		g := newGateway(t, func(policy.Ask) policy.Answer {
			return ok("<!doctype html><link rel=alternate type=application/rss+xml href=https://ann:s3cret@origin.test/feed.xml>")
		})
		g.settings.Log, g.settings.Feeds = zap.New(core), []string{feedURL}
		g.open()
		g.get(feedURL)
		synctest.Wait()
		if polled := lines.FilterMessage("polled").All(); len(polled) != 1 || fmt.Sprint(polled[0].ContextMap()["feeds"]) != "[https://***@origin.test/feed.xml]" {
			t.Errorf("the log says %+v", polled)
		}
	})
}

// A feed that points to another one has the state of that one. After seven days that is an incident, and reported.
func TestObservedMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, g := new(observer), newWebGateway(t, moving(301))
		g.settings.Observe = seen.observe
		g.open()
		g.feed(feedURL)
		moved := 0
		for day := range 10 {
			f, err := g.Status(t.Context(), feedURL)
			if err != nil || f.Alias != movedURL || f.State != status.StateFresh && f.State != status.StateDue {
				t.Errorf("day %d: points to %q, %s: %v", day, f.Alias, f.State, err)
			}
			if incident := f.Incident != nil && f.Incident.Kind == status.IncidentMoved; incident != (day >= 7) {
				t.Errorf("day %d: %+v", day, f.Incident)
			}
			time.Sleep(25 * time.Hour)
			g.feed(feedURL)
			time.Sleep(time.Minute)
		}
		for _, p := range seen.polls {
			if p.URL == feedURL && p.Result != status.ResultMoved {
				t.Errorf("polled: %+v", p)
			}
			if p.MovedTo != "" {
				moved++
			}
		}
		if moved != 1 {
			t.Errorf("reported %d times", moved)
		}
	})
}

// A poll whose outcome comes too late changes nothing: readers get what others have committed meanwhile.
func TestPollsThatCameTooLate(t *testing.T) {
	for name, late := range map[string]policy.Answer{"new": ok(rss(3, "")), "unchanged": unchanged(), "gone": failed(410, policy.FailureGone), "nothing": failed(0, policy.FailureDNS)} {
		bubble(t, name, func(t *testing.T) {
			seen, answer := new(observer), ok(rss(2, ""))
			g := newGateway(t, func(policy.Ask) policy.Answer { return answer })
			g.settings.Observe = seen.observe
			g.open()
			g.get(feedURL)
			time.Sleep(25 * time.Hour)
			g.store.hook(func(_ context.Context, call string) error {
				if call != "Commit" {
					return nil
				}
				g.store.hook(nil, nil)
				time.Sleep(25 * time.Hour) // the claim lapses
				other := node(t, g.store.Store, &script{answer: func(policy.Ask) policy.Answer { return ok(rss(4, "")) }}, cache.Settings{})
				wantBody(t, other.get(feedURL), 200, "Entry 4")
				return other.Cache.Close()
			}, nil)
			answer = late
			g.get(feedURL)
			time.Sleep(26 * time.Hour)
			if seen.last(t); len(seen.polls) != 1 {
				t.Errorf("reported are %+v", seen.polls)
			}
			wantBody(t, g.get(feedURL), 200, "Entry 4")
			if f := must(g.Status(t.Context(), feedURL)); f.LastResult != status.ResultNew || f.Failures != 0 || f.Version != 2 || g.origin.polls() != 2 {
				t.Errorf("after %d polls: %+v", g.origin.polls(), f)
			}
		})
	}
}
