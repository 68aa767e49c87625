// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// fleet is a store with that many feeds, each reserved and committed once.
func fleet(b *testing.B, dir string, feeds int) *Store {
	b.Helper()
	s, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	claims := make([]cache.Claim, feeds)
	for n := range claims {
		claims[n] = cache.Claim{ID: numbered(n), URL: fmt.Sprintf("https://example.com/%d/feed.xml", n), Now: time.Now(), Next: time.Now()}
	}
	if _, err := s.Reserve(b.Context(), claims); err != nil {
		b.Fatal(err)
	}
	var (
		wg   sync.WaitGroup
		next atomic.Int64
	)
	for range 64 {
		wg.Go(func() {
			for n := int(next.Add(1)) - 1; n < feeds; n = int(next.Add(1)) - 1 {
				o := cache.Outcome{ID: numbered(n), Token: 1, Now: time.Now(), Next: time.Now(), Memo: make([]byte, 500)}
				if err := s.Commit(b.Context(), o); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	return s
}

// numbered is an ID as good as a hash.
func numbered(n int) (id cache.ID) {
	binary.BigEndian.PutUint64(id[:], uint64(n)*0x9E3779B97F4A7C15)
	binary.BigEndian.PutUint64(id[8:], uint64(n))
	return id
}

// each runs b.N operations on 10,000 feeds, by so many callers at a time. shared
// is how many of them may share a transaction; 1 is bbolt's own queue.
func each(b *testing.B, operation func(s *Store, n int, token uint64) error) {
	const feeds = 10_000
	for _, c := range []struct{ callers, shared int }{{1, maxShared}, {64, maxShared}, {64, 1}} {
		b.Run(fmt.Sprintf("callers=%d/shared=%d", c.callers, c.shared), func(b *testing.B) {
			s := fleet(b, b.TempDir(), feeds)
			s.records.shared = c.shared
			var (
				wg   sync.WaitGroup
				next atomic.Int64
			)
			b.ResetTimer()
			for range c.callers {
				wg.Go(func() {
					for n := int(next.Add(1)) - 1; n < b.N; n = int(next.Add(1)) - 1 {
						if err := operation(s, n%feeds, uint64(1+n/feeds)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
		})
	}
}

func BenchmarkReserve(b *testing.B) {
	each(b, func(s *Store, n int, token uint64) error {
		// A slow caller may be a round behind: a denied claim is no failure here.
		_, err := s.Reserve(b.Context(), []cache.Claim{{ID: numbered(n), Token: token, Now: time.Now(), Next: time.Now()}})
		return err
	})
}

func BenchmarkCommit(b *testing.B) {
	memo := make([]byte, 500)
	each(b, func(s *Store, n int, _ uint64) error {
		return s.Commit(b.Context(), cache.Outcome{ID: numbered(n), Token: 1, Now: time.Now(), Next: time.Now(), Memo: memo})
	})
}

func BenchmarkCommitWithBody(b *testing.B) {
	content := make([]byte, 50_000)
	for i := range content {
		content[i] = byte(rand.Uint32())
	}
	body := &cache.Body{Version: 1, Coded: map[string][]byte{"gzip": content}}
	memo := make([]byte, 500)
	each(b, func(s *Store, n int, _ uint64) error {
		return s.Commit(b.Context(), cache.Outcome{ID: numbered(n), Token: 1, Now: time.Now(), Next: time.Now(), Memo: memo, Body: body})
	})
}

func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	s := fleet(b, dir, 10_000)
	for b.Loop() {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		var err error
		if s, err = Open(dir); err != nil {
			b.Fatal(err)
		}
	}
	s.Close()
}

func BenchmarkScan(b *testing.B) {
	s := fleet(b, b.TempDir(), 10_000)
	for b.Loop() {
		if err := s.Scan(b.Context(), func(cache.Record) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}
