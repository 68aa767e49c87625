// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/internal/schedule"
)

// BenchmarkUnchanged is what polls write that bring nothing new: they are claimed in
// batches, as many as that in flight, and committed. Each feed is polled once an hour, by
// a clock that goes as quickly. Sizes are those that the engine has.
func BenchmarkUnchanged(b *testing.B) {
	for _, size := range []struct{ feeds, batch int }{{10_000, 1}, {10_000, 128}, {100_000, 128}, {1_000_000, 128}} {
		b.Run(fmt.Sprintf("%d feeds, %d at a time", size.feeds, size.batch), func(b *testing.B) {
			if size.feeds > 100_000 && testing.Short() {
				b.Skip("a million feeds take a minute to be stored")
			}
			var passed atomic.Int64
			elapsed := func() time.Duration { return time.Duration(passed.Load()) }
			s, err := open(b.TempDir(), &clock{
				wall: func() time.Time { return start.Add(elapsed()) }, steady: elapsed,
				suspended: func() time.Duration { return 0 },
			}, zap.NewNop())
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			fillDue(b, s, size.feeds)
			ctx := b.Context()
			before, polls, late := written(b), 0, time.Duration(0)
			b.ResetTimer()
			for range b.N {
				leases, _, err := s.ClaimDue(ctx, store.DueQuery{Limit: size.batch, Idle: 1000 * time.Hour})
				if err != nil || len(leases) == 0 {
					b.Fatalf("%d leases, %v", len(leases), err)
				}
				var all sync.WaitGroup
				for _, l := range leases {
					all.Go(func() {
						if err := s.Commit(ctx, unchanged(l)); err != nil {
							b.Error(err)
						}
					})
				}
				all.Wait()
				polls += len(leases)
				passed.Add(int64(time.Hour) * int64(len(leases)) / int64(size.feeds))
				if elapsed()-late >= lateEvery {
					late = elapsed()
					if err := s.writeLate(ctx); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(written(b)-before)/1024/float64(polls), "KB/poll")
		})
	}
}

// writeLate begins to write what is late, as the writer does now and then.
func (s *Store) writeLate(ctx context.Context) error {
	return s.run(ctx, func(schedule.Time) (bool, error) {
		s.beginLate()
		return false, nil
	})
}

func benchID(n int) store.ID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
	return store.ID(sum[:16])
}

// fillDue stores feeds, each of a host of its own, that are all due.
func fillDue(b testing.TB, s *Store, n int) {
	b.Helper()
	for from := 0; from < n; from += 4096 {
		var saved []store.Saved
		for i := from; i < min(from+4096, n); i++ {
			host := fmt.Sprintf("www.site-%d.example", i)
			saved = append(saved, store.Saved{Record: store.Record{
				ID: benchID(i), URL: "https://" + host + "/feed.xml", Hold: time.Hour, State: store.StateFresh, Configured: true,
				In: -time.Duration(n-i) * time.Millisecond, Polled: time.Hour, Asked: time.Hour,
				Facts: make([]byte, 900), Memo: make([]byte, 1200), Host: store.Host{Name: host, Domain: host[4:]},
			}})
		}
		if err := s.Restore(context.Background(), saved); err != nil {
			b.Fatal(err)
		}
	}
}

func unchanged(l store.Lease) store.Outcome {
	return store.Outcome{ID: l.ID, Token: l.Token, In: 56 * time.Minute, Hold: time.Hour, State: store.StateFresh, Facts: l.Facts, Host: l.Host}
}

// written is how many bytes the process has passed to write calls.
func written(b testing.TB) (bytes int64) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/io")
	if err != nil {
		b.Skip("only Linux counts what is written")
	}
	var read int64
	if _, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d\n", &read, &bytes); err != nil {
		b.Fatal(err)
	}
	return bytes
}
