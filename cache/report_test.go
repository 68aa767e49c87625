// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	zapobserver "go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/policy"
)

// observer keeps the polls that it is told of.
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
		t.Fatal("nothing was told")
	}
	return o.polls[len(o.polls)-1]
}

func TestObservedPolls(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		var answer policy.Answer
		told := new(observer)
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return answer })
		g.settings.Observe, g.settings.Feeds = told.observe, []string{feedURL} // or it would be forgotten before it works
		g.open()
		defer func() { g.close() }()
		for _, tt := range []struct {
			name   string
			answer policy.Answer
			want   cache.Poll
		}{
			{"never worked", failed(404, policy.FailureNotFound), cache.Poll{Result: cache.ResultFailed, Failure: policy.FailureNotFound, Failures: 1, Known: true}},
			{"nor again", failed(500, policy.FailureStatus), cache.Poll{Result: cache.ResultFailed, Failure: policy.FailureStatus, Before: policy.FailureNotFound, Failures: 2, Known: true}},
			{"first version", ok(rss(2, "")), cache.Poll{Result: cache.ResultNew, Before: policy.FailureStatus, Updated: true, First: true, Entries: 2, Recovered: 2, Known: true}},
			{"unchanged", ok(rss(2, "")), cache.Poll{Result: cache.ResultUnchanged, Entries: 2, Known: true}},
			{"second version", ok(rss(3, "")), cache.Poll{Result: cache.ResultNew, Updated: true, Entries: 3, Known: true}},
			{"fails", failed(503, policy.FailureStatus), cache.Poll{Result: cache.ResultFailed, Failure: policy.FailureStatus, Failures: 1, Entries: 3, Known: true}},
		} {
			answer = tt.answer
			g.get(feedURL)
			got := told.last(t)
			if got.URL != feedURL || got.Status != tt.answer.Status || !got.Next.After(time.Now()) || (got.Err != nil) != (got.Failure != "") {
				t.Errorf("%s: %+v", tt.name, got)
			}
			got.URL, got.Status, got.Next, got.Err, got.Took, got.Winner = "", 0, time.Time{}, nil, 0, ""
			if got != tt.want {
				t.Errorf("%s: got %+v, want %+v", tt.name, got, tt.want)
			}
			time.Sleep(25 * time.Hour)
		}
	})
}

// The log has what an error leaves out, for nobody else tells it.
func TestLogTellsMore(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		core, lines := zapobserver.New(zap.InfoLevel)
		answer := failed(0, policy.FailureInternal)
		answer.Detail = "https://origin.test/: the gateway failed: panic: at the answer"
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return answer })
		g.settings.Log, g.settings.Feeds = zap.New(core), []string{feedURL}
		g.open()
		defer func() { g.close() }()
		g.get(feedURL)
		synctest.Wait()
		polled := lines.FilterMessage("polled").All()
		if len(polled) != 1 || polled[0].ContextMap()["detail"] != answer.Detail {
			t.Errorf("the log says %+v", polled)
		}
	})
}

// An adopted redirect is told, together with what the poll brought.
func TestObservedMoves(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		told, entries := new(observer), 2
		g := newWebGateway(t, dir, func(url string) response {
			if url == movedURL {
				return given(rss(entries, ""))
			}
			return redirect(301, movedURL)
		})
		g.settings.Observe = told.observe
		g.open()
		defer func() { g.close() }()
		for began := time.Now(); time.Since(began) < 7*24*time.Hour; time.Sleep(25 * time.Hour) {
			g.get(feedURL)
		}
		entries++
		g.get(feedURL)
		if p := told.last(t); p.Result != cache.ResultMoved || p.MovedTo != movedURL || !p.Updated {
			t.Errorf("adopted: %+v", p)
		}
	})
}

// What was sent says what the reader has waited for.
func TestSentTellsOfPolls(t *testing.T) {
	bubble(t, func(t *testing.T, dir string) {
		g := newGateway(t, dir, func(policy.Ask) policy.Answer { return ok(rss(2, "")) }).open()
		defer func() { g.close() }()
		f, err := g.Feed(t.Context(), feedURL)
		if err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after   time.Duration
			forward string
		}{{0, "miss"}, {0, ""}, {25 * time.Hour, "stale"}, {0, ""}} {
			time.Sleep(step.after)
			sent, err := f.Serve(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
			if err != nil || sent.Forward != step.forward {
				t.Errorf("got %+v %v, want %q", sent, err, step.forward)
			}
		}
	})
}
