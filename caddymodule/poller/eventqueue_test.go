// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
)

func TestEventsOfPoll(t *testing.T) {
	for _, tt := range []struct {
		name string
		poll cache.Poll
		want []string
	}{
		{"unchanged", cache.Poll{Result: status.ResultUnchanged, IsFeed: true}, nil},
		{"new", cache.Poll{Result: status.ResultNew, Updated: true}, []string{eventUpdated}},
		{"has pointed elsewhere for days", cache.Poll{Result: status.ResultMoved, MovedTo: "https://a.example/", IsFeed: true}, []string{eventMoved}},
		{"redirects", cache.Poll{Result: status.ResultMoved, IsFeed: true}, nil},
		{"works again", cache.Poll{Result: status.ResultUnchanged, Recovered: 3, IsFeed: true}, []string{eventRecovered}},
		{"works at last", cache.Poll{Result: status.ResultNew, Updated: true, Recovered: 3}, []string{eventUpdated}},
		{"fails", cache.Poll{Result: status.ResultFailed, Failure: policy.FailureDNS, Failures: 1, IsFeed: true}, []string{eventFailed}},
		{"goes on failing", cache.Poll{Result: status.ResultFailed, Failure: policy.FailureDNS, Failures: 2, IsFeed: true}, nil},
		{"was no feed", cache.Poll{Result: status.ResultFailed, Failure: policy.FailureNotFeed, Failures: 1}, nil},
		{"the store fails", cache.Poll{Result: status.ResultFailed, Failure: policy.FailureStore, Failures: 1, IsFeed: true}, nil},
		{"gone", cache.Poll{Result: status.ResultGone, Failure: policy.FailureGone, Failures: 4, IsFeed: true}, []string{eventGone}},
		{"still gone", cache.Poll{Result: status.ResultGone, Failure: policy.FailureGone, Before: policy.FailureGone, IsFeed: true}, nil},
	} {
		if got := eventsOf(&tt.poll); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

// Events that come too fast for handlers are dropped; polls do not wait.
func TestTooManyEvents(t *testing.T) {
	logger, logged := observer.New(zapcore.WarnLevel)
	e := newEngine(Parts{})
	e.app.Store(&App{log: zap.New(logger)})
	for range maxQueued + 3 {
		e.queueEvents(cache.Poll{URL: "https://one.example/feed", Updated: true})
	}
	if n := logged.Len(); n != 3 {
		t.Errorf("%d events were dropped, want 3", n)
	}
}

// Readers that strangers make up cause a thousand events an hour at most.
func TestRefusedReadersAreBounded(t *testing.T) {
	q, now, events := newRefusedReaders(), time.Now(), 0
	for hour := range 2 {
		for reader := range uint64(3 * maxRefused) {
			if q.first(reader, now.Add(time.Duration(hour)*refusedEvery)) {
				events++
			}
		}
	}
	if events != 2*maxRefused {
		t.Errorf("%d events in two hours, want %d", events, 2*maxRefused)
	}
}
