// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package caddymodule_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/feedpollard/pollard/caddymodule/internal/stage"
	"github.com/feedpollard/pollard/internal/loopback"
	"github.com/feedpollard/pollard/internal/origintest"
)

// counts are what the pages of a gateway tell of all that it has done.
type counts struct {
	requests, polls, served, fetched int64 // as of the day, and the same as of the origin
	readers, byReaders               int64
	subscribers                      int64
}

// countsOf reads the pages of a gateway.
func countsOf(t *testing.T, address, feed string) (c counts) {
	t.Helper()
	type traffic struct {
		Requests int64
		Polls    int64
		Served   int64 `json:"served_bytes"`
		Fetched  int64 `json:"fetched_bytes"`
	}
	var savings struct {
		Total         traffic
		Days, Origins []traffic
	}
	page := func(target string, into any) {
		t.Helper()
		r, _ := http.NewRequest("GET", "http://"+address+target, nil)
		r.Header.Set("Accept", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
			t.Fatalf("%s: %d, %v", target, resp.StatusCode, err)
		}
	}
	page("/-/savings", &savings)
	var days, origins traffic
	for sum, list := range map[*traffic][]traffic{&days: savings.Days, &origins: savings.Origins} {
		for _, one := range list {
			sum.Requests += one.Requests
			sum.Polls += one.Polls
			sum.Served += one.Served
			sum.Fetched += one.Fetched
		}
	}
	if days != savings.Total || origins != savings.Total {
		t.Errorf("in all %+v, by day %+v, by origin %+v", savings.Total, days, origins)
	}
	c.requests, c.polls, c.served, c.fetched = days.Requests, days.Polls, days.Served, days.Fetched
	var readers struct {
		Readers  int64
		Requests int64
	}
	page("/-/readers", &readers)
	c.readers, c.byReaders = readers.Readers, readers.Requests
	var account struct{ Subscribers int64 }
	page("/-/feeds?url="+feed, &account)
	c.subscribers = account.Subscribers
	return c
}

// loadCounting puts a gateway in force, at another address each time: a server that ends may
// still take connections at its own, and drop them.
func loadCounting(t *testing.T, store, app, gateway string) (address string) {
	t.Helper()
	address = loopback.FreeAddress(t)
	err := stage.LoadCaddyfile(fmt.Sprintf(`{
	admin off
	persist_config off
	auto_https off
	log {
		output discard
	}
	pollard {
		store sqlite %s
		private_upstreams 127.0.0.0/8
		%s
	}
}
http://%s {
	feed_gateway {
		%s
	}
}
`, store, app, address, gateway))
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// What has been counted is there after a reload, which counts nothing twice, and after
// the process has ended: in sum, and to the byte.
func TestCountsOutliveTheProcess(t *testing.T) {
	var polled, fetched atomic.Int64
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		polled.Add(1)
		body := origintest.Feed(1, "")
		fetched.Add(int64(len(body)))
		w.Header().Set("Content-Type", "application/rss+xml")
		io.WriteString(w, body)
	}))
	t.Cleanup(origin.Close)
	store := stage.StoreDirectory(t)
	feed := origin.URL + "/feed.xml"
	var address string
	load := func(contact string) { address = loadCounting(t, store, "contact "+contact, "readers") }
	var want counts
	ask := func(agents ...string) {
		t.Helper()
		for _, agent := range agents {
			r, _ := http.NewRequest("GET", "http://"+address+"/"+feed, nil)
			r.Header.Set("User-Agent", agent)
			r.Header.Set("Accept-Encoding", "gzip") // what was sent is counted, and not what is read
			resp, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatalf("%d %s, %v", resp.StatusCode, body, err)
			}
			want.requests++
			want.byReaders++
			want.served += int64(len(body))
		}
	}
	now := func() counts { return countsOf(t, address, strings.ReplaceAll(feed, ":", "%3A")) }
	check := func(when string) {
		t.Helper()
		want.polls, want.fetched = polled.Load(), fetched.Load()
		if got := now(); got != want {
			t.Errorf("%s: %+v, want %+v", when, got, want)
		}
	}
	// Subscribers are an estimate: in some of a thousand stores two readers are taken for
	// one. What it is, it stays.
	known := func(readers int64) {
		t.Helper()
		want.readers, want.subscribers = readers, now().subscribers
		if want.subscribers < readers-1 || want.subscribers > readers {
			t.Errorf("%d subscribers, want some %d", want.subscribers, readers)
		}
	}
	end := func() {
		t.Helper()
		if err := caddy.Stop(); err != nil {
			t.Fatal(err)
		}
		http.DefaultClient.CloseIdleConnections()
	}

	load("one@example.com")
	t.Cleanup(end)
	ask("Alpha/1", "Alpha/2", "Beta/1")
	known(2)
	check("at first")
	ask("Alpha/1")
	load("two@example.com") // while something is not stored yet
	check("after a reload")
	ask("Gamma/1", "Gamma/1")
	known(3)
	end()
	load("one@example.com")
	check("after a restart")
	ask("Beta/1", "Delta/1")
	known(4)
	check("and more")
	end()
	load("three@example.com")
	check("after another restart")
}

// A poll under way when the process is asked to end was a request to its origin, and counts.
func TestPollAtTheEndCounts(t *testing.T) {
	asked := make(chan struct{})
	origin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		time.Sleep(500 * time.Millisecond) // of which the end takes less
		w.Header().Set("Content-Type", "application/rss+xml")
		io.WriteString(w, origintest.Feed(1, ""))
	}))
	t.Cleanup(origin.Close)
	store := stage.StoreDirectory(t)
	end := func() {
		if err := caddy.Stop(); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	}
	own := "feed /feed.xml " + origin.URL + "/feed.xml"
	loadCounting(t, store, "prefetch", own)
	<-asked
	end()
	address := loadCounting(t, store, "", own)
	t.Cleanup(end)
	if got := countsOf(t, address, strings.ReplaceAll(origin.URL, ":", "%3A")+"/feed.xml"); got.polls != 1 {
		t.Errorf("%d polls are counted, want 1", got.polls)
	}
}
