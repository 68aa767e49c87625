// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package bolt

import (
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		dir := directory(t)
		var slept atomic.Int64
		awake := func() time.Duration { return time.Duration(slept.Load()) }
		return storetest.Harness{
			Open: func() store.Store {
				s, err := open(dir, &clock{
					wall:      func() time.Time { return start.Add(awake()) },
					steady:    awake,
					suspended: func() time.Duration { return 0 },
				}, zap.NewNop())
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Sleep: func(d time.Duration) { slept.Add(int64(d)) },
			Kill:  func(s store.Store) { s.(*Store).kill() },
		}
	})
}

// directory is an empty one: in memory where there is such a file system, as nothing
// here depends on what a disk does when its power fails.
func directory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "pollard")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// kill ends the store without writing anything more.
func (s *Store) kill() {
	s.closeOnce.Do(func() {
		close(s.closing)
		<-s.written
		s.background.Wait()
		s.closed = s.db.Close()
	})
}
