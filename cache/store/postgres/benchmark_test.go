// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/postgres/postgrestest"
)

// The server of these writes to the disk before it answers, as one that is used does.

// BenchmarkClaim claims feeds one by one, for many callers.
func BenchmarkClaim(b *testing.B) {
	s := open(b, postgrestest.Start(b).Database(b))
	var n atomic.Int64
	for b.Loop() {
		inParallel(b, 1000, func() {
			grant(b, s, claim(int(n.Add(1))))
		})
	}
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "claims/s")
}

// BenchmarkClaimBatch claims feeds as a poller does that has many due.
func BenchmarkClaimBatch(b *testing.B) {
	s := open(b, postgrestest.Start(b).Database(b))
	n := 0
	for b.Loop() {
		claims := make([]store.Claim, 64)
		for i := range claims {
			n++
			claims[i] = claim(n)
			claims[i].Host.Name = claims[i].URL
		}
		if _, err := s.Claim(b.Context(), claims); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "claims/s")
}

// BenchmarkPoll claims what is due and commits that nothing has changed, or a body.
func BenchmarkPoll(b *testing.B) {
	for name, size := range map[string]int{"unchanged": 0, "50KB": 50_000} {
		b.Run(name, func(b *testing.B) {
			s := open(b, postgrestest.Start(b).Database(b))
			const feeds = 512
			claims := make([]store.Claim, feeds)
			for n := range claims {
				claims[n] = configured(n)
			}
			leases, err := s.Claim(b.Context(), claims)
			if err != nil {
				b.Fatal(err)
			}
			body := make([]byte, size)
			rand.NewChaCha8([32]byte{}).Read(body)
			version := uint64(0)
			commitAll := func() {
				version++
				todo := make(chan store.Lease, len(leases))
				for _, l := range leases {
					todo <- l
				}
				inParallel(b, len(leases), func() {
					o := outcome(<-todo, 0)
					o.In = 0
					if size > 0 || version == 1 {
						o.Body = &store.Body{Version: version, Coding: "gzip", Data: append([]byte(nil), body...)}
						o.Memo = body[:min(size, 1500)]
					}
					commit(b, s, o)
				})
			}
			commitAll()
			for b.Loop() {
				for done := 0; done < feeds; done += len(leases) {
					if leases, _, err = s.ClaimDue(b.Context(), store.DueQuery{Limit: 64}); err != nil {
						b.Fatal(err)
					}
					commitAll()
				}
			}
			b.ReportMetric(feeds*float64(b.N)/b.Elapsed().Seconds(), "polls/s")
		})
	}
}

// inParallel does something n times, for 32 callers.
func inParallel(b *testing.B, n int, do func()) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(n))
	done := make(chan struct{})
	for range 32 {
		go func() {
			defer func() { done <- struct{}{} }()
			for left.Add(-1) >= 0 {
				do()
			}
		}()
	}
	for range 32 {
		<-done
	}
}
