// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/internal/status"
	"github.com/feedpollard/pollard/policy"
	"github.com/feedpollard/pollard/upstream"
)

// withInterval are settings that can be told apart by the max-age that
// readers get.
func withInterval(d time.Duration) settings {
	rules := policy.DefaultRules()
	rules.MinInterval, rules.DefaultInterval, rules.MaxInterval, rules.Jitter = d, d, d, 0
	return settings{store: memory{}, log: zap.NewNop(), cache: cache.Settings{Rules: func(cache.Key) policy.Rules { return rules }}}
}

// Caddy starts a new configuration before it stops the old one, and when the new
// one fails, goes on with the old one without starting it again.
func TestOwnersOfTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(Parts{Origin: upstream.New(upstream.WithTransport(new(anything)))})
		defer e.Destruct()
		takeOver := func(d time.Duration) uint64 {
			t.Helper()
			generation, err := e.takeOver(withInterval(d))
			if err != nil {
				t.Fatal(err)
			}
			return generation
		}
		n := 0
		check := func(what string, want time.Duration) {
			t.Helper()
			n++
			time.Sleep(time.Minute) // each poll asks a new feed, of one host
			account := poll(t, e, "https://one.example/feed"+string(rune('0'+n)))
			if got := account.NextPoll.Sub(account.LastPoll); got != want {
				t.Errorf("%s: the interval is %v, want %v", what, got, want)
			}
		}
		first := takeOver(25 * time.Hour)
		check("first", 25*time.Hour)
		second := takeOver(26 * time.Hour)
		check("second beside first", 26*time.Hour)
		e.release(first)
		check("second alone", 26*time.Hour)
		third := takeOver(27 * time.Hour)
		e.release(third) // something else in it failed to start
		check("second again", 26*time.Hour)
		e.release(third) // twice does no harm
		e.release(second)
		e.release(0) // of an app that never started
		check("nobody", 26*time.Hour)
	})
}

// anything is a web in which everything is a feed.
type anything struct{}

func (anything) RoundTrip(r *http.Request) (*http.Response, error) {
	const feed = `<rss version="2.0"><channel><title>T</title><item><title>One</title></item></channel></rss>`
	return &http.Response{StatusCode: 200, ProtoMajor: 1, Request: r, Header: http.Header{"Etag": {`"one"`}}, Body: io.NopCloser(strings.NewReader(feed))}, nil
}

// poll asks for a feed as a reader would, and describes it.
func poll(t *testing.T, e *Engine, url string) status.Feed {
	t.Helper()
	c, err := e.Opened(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	feed, err := c.Feed(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	if sent, err := feed.Serve(w, httptest.NewRequest("GET", "/", nil)); err != nil || sent.Status != 200 {
		t.Fatalf("%s: %d %v", url, sent.Status, err)
	}
	account, err := c.Status(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return account
}

// memory is a store that nothing outlives.
type memory struct{}

func (memory) Key() string    { return "memory" }
func (memory) String() string { return "memory" }
func (memory) Open(context.Context, *zap.Logger) (store.Store, error) {
	return sqlite.NewMemory(time.Now), nil
}
