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
			{"never worked", failed(404, policy.FailureNotFound), cache.Poll{Result: status.ResultFailed, Failure: policy.FailureNotFound, Failures: 1, Known: true}},
			{"nor again", failed(500, policy.FailureStatus), cache.Poll{Result: status.ResultFailed, Failure: policy.FailureStatus, Before: policy.FailureNotFound, Failures: 2, Known: true}},
			{"first version", ok(rss(2, "")), cache.Poll{Result: status.ResultNew, Before: policy.FailureStatus, Updated: true, First: true, Entries: 2, Recovered: 2, Known: true}},
			{"unchanged", ok(rss(2, "")), cache.Poll{Result: status.ResultUnchanged, Entries: 2, Known: true}},
			{"second version", ok(rss(3, "")), cache.Poll{Result: status.ResultNew, Updated: true, Entries: 3, Known: true}},
			{"fails", failed(503, policy.FailureStatus), cache.Poll{Result: status.ResultFailed, Failure: policy.FailureStatus, Failures: 1, Entries: 3, Known: true}},
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
		g.settings.Shown = func(key string) string { return strings.TrimPrefix(key, "https:") }
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

// A feed that redirects to one that is read too waits for that one's turn at each poll. The log does not warn of
// that, and it has no incident.
func TestRedirectThatWaitsIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, lines := zapobserver.New(zap.WarnLevel)
		g := newWebGateway(t, moving(302))
		g.settings.Log, g.settings.Feeds = zap.New(core), []string{feedURL}
		g.open()
		for range 3 * 24 {
			g.get(movedURL)
			g.get(feedURL)
			time.Sleep(time.Hour)
		}
		f, err := g.Status(t.Context(), feedURL)
		if err != nil || f.LastFailure != policy.FailureHeld || f.Incident != nil || lines.Len() > 0 {
			t.Errorf("%s, %+v, %d warnings, %v", f.LastFailure, f.Incident, lines.Len(), err)
		}
	})
}

// That a feed has moved is an incident also if its new URL is read for itself, so that each poll of the old one waits.
func TestMoveToFeedThatIsReadIsAnIncident(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newWebGateway(t, moving(301))
		g.settings.Feeds = []string{feedURL}
		g.open()
		for range 10 * 24 {
			g.get(movedURL)
			g.feed(feedURL)
			time.Sleep(time.Hour)
		}
		if f, err := g.Status(t.Context(), feedURL); err != nil || f.Alias != movedURL || f.Incident == nil || f.Incident.Kind != status.IncidentMoved {
			t.Errorf("moved to %q: %+v, %v", f.Alias, f.Incident, err)
		}
	})
}

// An adopted redirect is reported, together with the version of the poll.
func TestObservedMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen, entries := new(observer), 2
		g := newWebGateway(t, func(url string) response {
			if url == movedURL {
				return given(rss(entries, ""))
			}
			return redirect(301, movedURL)
		})
		g.settings.Observe = seen.observe
		g.open()
		for began := time.Now(); time.Since(began) < 7*24*time.Hour; time.Sleep(25 * time.Hour) {
			g.get(feedURL)
		}
		entries++
		g.get(feedURL)
		if p := seen.last(t); p.Result != status.ResultMoved || p.MovedTo != movedURL || !p.Updated {
			t.Errorf("adopted: %+v", p)
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
