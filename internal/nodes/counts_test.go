// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"io"
	"net/http"
	"sync"
	"syscall"
	"testing"

	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
	"github.com/feedpollard/pollard/figures"
)

// Two nodes count together, to the last request and poll, over a restart of both.
func TestNodesCountTogether(t *testing.T) {
	if testing.Short() {
		t.Skip("runs two processes and a database")
	}
	cluster := postgrestest.Start(t)
	t.Setenv("POLLARD_TEST_PASSWORD", "secret%2Fwith%3Asigns")
	database := cluster.Database(t)
	w := &web{paths: make(map[string]*feed)}
	for range 3 {
		w.addFeed(w.addHost(t), 3, floor)
	}
	binary := build(t)
	nodes := []*node{newNode(t, "A", binary, database, nil, w), newNode(t, "B", binary, database, nil, w)}
	var requests int64
	for range 2 {
		for _, n := range nodes {
			n.start(t)
		}
		var all sync.WaitGroup
		var mu sync.Mutex
		for _, n := range nodes {
			for _, f := range w.feeds {
				all.Go(func() {
					for range 50 {
						resp, err := http.Get("http://" + n.address + f.path)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, resp.Body)
						resp.Body.Close()
						if resp.StatusCode != http.StatusOK || resp.Header.Get("ETag") == "" {
							continue // its first poll has to wait for the other node
						}
						mu.Lock()
						requests++
						mu.Unlock()
					}
				})
			}
		}
		all.Wait()
		http.DefaultClient.CloseIdleConnections()
		for _, n := range nodes {
			n.signal(syscall.SIGTERM)
			<-n.done
		}
	}
	s, err := postgres.Open(t.Context(), postgres.Options{URL: database})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for kind, name := range map[figures.Kind]string{figures.Day: "by day", figures.Origin: "by origin"} {
		found, err := s.Figures(t.Context(), kind, "")
		if err != nil {
			t.Fatal(err)
		}
		var sum [4]int64
		for _, f := range found {
			for i := range sum {
				sum[i] += f.Counts[i]
			}
		}
		if sum[0] != requests || sum[1] != int64(w.polled()) {
			t.Errorf("%s: %d requests and %d polls are counted, want %d and %d\n%s", name, sum[0], sum[1], requests, w.polled(), tail(nodes[0].said()))
		}
	}
	if requests < 300 {
		t.Errorf("%d requests were answered: this shows little", requests)
	}
}
