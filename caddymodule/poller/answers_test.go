// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/internal/readers"
)

// Each answer is counted once, at the latest after a second, however many come at one time. Counting that
// takes long delays none of the first thousand.
func TestAnswersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := startNode(t, newCounting(), "one")
		answer := readers.Request{Time: time.Now(), Feed: "shield:x https://example.com/", Client: netip.MustParseAddr("192.0.2.1"), Method: "GET", Status: 200, Bytes: 1}
		counted := func(want int64) {
			t.Helper()
			time.Sleep(countAfter)
			synctest.Wait()
			if n := len(e.counters.answers.uncounted); n != 0 {
				t.Errorf("%d answers still wait", n)
			}
			if got := e.Traffic(t.Context(), all, all).Total; got.Requests != want || got.Served != want {
				t.Errorf("%+v, want %d requests", got, want)
			}
			if got := e.Readers(t.Context(), readers.ReportOptions{}).Total.Requests; got != want {
				t.Errorf("%d requests of readers, want %d", got, want)
			}
		}
		e.Answered(answer)
		counted(1)
		e.counters.answers.mu.Lock()
		for range maxAnswers {
			e.Answered(answer)
		}
		e.counters.answers.mu.Unlock()
		counted(1 + maxAnswers)
		var crowd sync.WaitGroup
		for range 10 {
			crowd.Go(func() {
				for range maxAnswers {
					e.Answered(answer)
				}
			})
		}
		crowd.Wait()
		counted(1 + 11*maxAnswers)
		e.counters.close()
	})
}
