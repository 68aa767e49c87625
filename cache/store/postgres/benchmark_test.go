// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
)

// BenchmarkNodes has three nodes claim and commit polls of 3,000 hosts, of which one in ten
// brings a version of 20 KB, and measures how soon another node sees a version. Its server
// writes to the disk before it answers, as one that is used does.
func BenchmarkNodes(b *testing.B) {
	const (
		nodes, workers = 3, 8
		feeds          = 3000
	)
	url := postgrestest.Start(b).Database(b) + "&pool_max_conns=8"
	var (
		stores  []*postgres.Store
		body    = make([]byte, 20_000)
		version atomic.Uint64
		sent    sync.Map // when commits of versions began
		mu      sync.Mutex
		delays  []time.Duration
	)
	for range nodes {
		stores = append(stores, open(b, url))
	}
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	go stores[0].Watch(ctx, func(c store.Change) error {
		if at, ok := sent.Load(c.Version); ok {
			mu.Lock()
			defer mu.Unlock()
			delays = append(delays, time.Since(at.(time.Time)))
		}
		return nil
	})
	var saved []store.Saved
	for n := range feeds {
		id, url := feed(n)
		saved = append(saved, store.Saved{Record: store.Record{ID: id, URL: url, Configured: true, State: store.StateCold,
			Hold: time.Hour, Host: store.Host{Name: fmt.Sprint("host", n)}, Polled: -1, Asked: -1}})
	}
	if err := stores[0].Restore(b.Context(), saved); err != nil {
		b.Fatal(err)
	}
	var left atomic.Int64
	poll := func(s store.Store) {
		for left.Load() > 0 {
			leases, _, err := s.ClaimDue(b.Context(), store.DueQuery{Limit: 8})
			if err != nil {
				b.Error(err)
				return
			}
			var commits sync.WaitGroup
			for _, l := range leases {
				left.Add(-1)
				commits.Go(func() {
					o := outcome(l, 0)
					o.In = 0
					if v := version.Add(1); v%10 == 0 {
						o.Body = &store.Body{Version: v, Coding: "gzip", Data: body}
						if s != store.Store(stores[0]) {
							sent.Store(v, time.Now())
						}
					}
					if err := s.Commit(b.Context(), o); err != nil {
						b.Error(err)
					}
				})
			}
			commits.Wait()
		}
	}
	for b.Loop() {
		left.Store(feeds)
		var all sync.WaitGroup
		for n := range nodes * workers {
			all.Go(func() { poll(stores[n%nodes]) })
		}
		all.Wait()
	}
	b.ReportMetric(feeds*float64(b.N)/b.Elapsed().Seconds(), "polls/s")
	mu.Lock()
	defer mu.Unlock()
	slices.Sort(delays)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(delays[len(delays)*p/100].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
}
