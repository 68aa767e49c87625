// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// A feed may leave memory between the moment at which a reader has found it and that
// reader's poll: by a question whether it is known, or because many others crowd it
// out. Readers who come then join the poll all the same.
func TestReadersOfAFeedThatLeftMemoryJoinItsPoll(t *testing.T) {
	for name, leave := range map[string]func(g *gateway){
		"asked whether it is known": func(g *gateway) {
			if g.Has(g.t.Context(), feedURL) {
				g.t.Fatal("a feed is known that was never polled")
			}
		},
		"crowded out": func(g *gateway) {
			for i := range 900 {
				if _, err := g.Feed(g.t.Context(), fmt.Sprintf("https://other.test/%d", i)); err != nil {
					g.t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
		},
	} {
		bubble(t, name, func(t *testing.T) {
			g := newGateway(t, func(policy.Ask) policy.Answer {
				time.Sleep(2 * time.Second)
				return ok(rss(2, ""))
			}).open()
			early, err := g.Feed(t.Context(), feedURL)
			if err != nil {
				t.Fatal(err)
			}
			leave(g)
			var readers sync.WaitGroup
			readers.Go(func() {
				w := httptest.NewRecorder()
				if _, err := early.Serve(w, httptest.NewRequest(http.MethodGet, "/", nil)); err != nil {
					t.Error(err)
				}
				wantBody(t, w, 200, "Entry 2")
			})
			time.Sleep(time.Second) // the poll is under way
			for range 10 {
				readers.Go(func() { wantBody(t, g.get(feedURL), 200, "Entry 2") })
			}
			readers.Wait()
			if n := g.origin.polls(); n != 1 {
				t.Errorf("%d polls, want 1", n)
			}
		})
	}
}
