// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/cache/store/sqlite"
	"github.com/feedpollard/pollard/internal/feedurl"
	"github.com/feedpollard/pollard/policy"
)

// exampleOrigin answers polls in place of the network. Package upstream has the real one.
type exampleOrigin struct{}

func (o exampleOrigin) Acquire(feedurl.URL) policy.Slot { return o }
func (exampleOrigin) Host(u feedurl.URL) policy.Host {
	return policy.Host{Site: u.Name(), Spacing: 2 * time.Second}
}
func (exampleOrigin) Release() {}

func (exampleOrigin) Poll(_ context.Context, ask policy.Ask) policy.Answer {
	fmt.Println("poll of", ask.URL)
	return policy.Answer{
		Asked: time.Now(), URL: ask.URL.String(), Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/rss+xml"}, "Etag": {`"1"`}},
		Body:   []byte(`<rss version="2.0"><channel><title>News</title><item><title>One</title></item></channel></rss>`),
	}
}

// A cache over a store in memory. The first request causes a poll. The second one has the
// ETag of the first response: it gets a 304, without a poll.
func Example() {
	db := sqlite.NewMemory(nil)
	defer db.Close()
	c, err := cache.New(cache.Options{Store: db, Origin: exampleOrigin{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	c.Apply(cache.Settings{}) // default rules: at most one poll an hour

	get := func(etag string) http.Header {
		r, w := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
		if etag != "" {
			r.Header.Set("If-None-Match", etag)
		}
		feed, err := c.Feed(r.Context(), "https://example.com/feed.xml")
		if err == nil {
			feed.Ask(0, true)
			_, err = feed.Serve(w, r, cache.ServeOptions{})
		}
		if err != nil {
			fmt.Println(err)
		}
		how, _, _ := strings.Cut(w.Header().Get("Cache-Status"), "; ttl")
		fmt.Println(w.Code, how)
		return w.Header()
	}
	first := get("")
	get(first.Get("Etag"))
	// Output:
	// poll of https://example.com/feed.xml
	// 200 Pollard; fwd=miss; fwd-status=200; stored
	// 304 Pollard; hit
}
