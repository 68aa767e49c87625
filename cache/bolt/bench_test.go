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
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache"
)

// BenchmarkUnchanged is what polls write that bring nothing new: they are claimed in
// batches, as many as that in flight, and committed. Sizes are those that the engine has.
func BenchmarkUnchanged(b *testing.B) {
	for _, size := range []struct{ feeds, batch int }{{10_000, 1}, {10_000, 128}, {100_000, 128}, {1_000_000, 128}} {
		b.Run(fmt.Sprintf("%d feeds, %d at a time", size.feeds, size.batch), func(b *testing.B) {
			if size.feeds > 100_000 && testing.Short() {
				b.Skip("a million feeds take a minute to be stored")
			}
			dir := b.TempDir()
			s, err := Open(dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			fillDue(b, s, size.feeds)
			ctx := b.Context()
			before, polls := written(b), 0
			b.ResetTimer()
			for range b.N {
				leases, _, err := s.ClaimDue(ctx, cache.DueQuery{Limit: size.batch, Idle: 30 * 24 * time.Hour})
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
			}
			b.StopTimer()
			b.ReportMetric(float64(written(b)-before)/1024/float64(polls), "KB/poll")
		})
	}
}

func benchID(n int) cache.ID {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n)))
	return cache.ID(sum[:16])
}

// fillDue stores feeds, each of a host of its own, that are all due.
func fillDue(b *testing.B, s *Store, n int) {
	b.Helper()
	for from := 0; from < n; from += 4096 {
		var saved []cache.Saved
		for i := from; i < min(from+4096, n); i++ {
			host := fmt.Sprintf("www.site-%d.example", i)
			saved = append(saved, cache.Saved{Record: cache.Record{
				ID: benchID(i), URL: "https://" + host + "/feed.xml", Hold: time.Hour, State: cache.StateFresh, Configured: true,
				In: -time.Duration(n-i) * time.Millisecond, Polled: time.Hour, Asked: time.Hour,
				Facts: make([]byte, 90), Memo: make([]byte, 1200), Host: cache.Host{Name: host, Domain: host[4:]},
			}})
		}
		if err := s.Restore(context.Background(), saved); err != nil {
			b.Fatal(err)
		}
	}
}

func unchanged(l cache.Lease) cache.Outcome {
	return cache.Outcome{ID: l.ID, Token: l.Token, In: time.Millisecond, Hold: time.Hour, State: cache.StateFresh, Facts: l.Facts, Host: l.Host}
}

// written is how many bytes the process has passed to write calls.
func written(b *testing.B) (bytes int64) {
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
