// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"flag"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store/storetest"
)

// TestContract takes a third of the walks through the model: the rules are those of the store in memory.
func TestContract(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	all := checks.String()
	mustDo(t, checks.Set("30"))
	defer checks.Set(all)
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		dir := directory(t)
		var slept atomic.Int64
		var s *Store
		return storetest.Harness{
			Open: func() storetest.Handle {
				var err error
				s, err = Open(dir, Options{Clocks: func() Reading {
					awake := time.Duration(slept.Load())
					return Reading{Wall: start.Add(awake), Since: awake, Boot: "this"}
				}})
				if err != nil {
					t.Fatal(err)
				}
				return s
			},
			Sleep: func(d time.Duration) { slept.Add(int64(d)) },
			Kill:  func(s storetest.Handle) { s.(*Store).kill() },
			Exec: func(sql string, args ...any) {
				mustDo(t, s.database.outside(t.Context(), func(c *connection) error { return c.exec(sql, args...) }))
			},
		}
	})
}

func TestContractInMemory(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Harness {
		var slept atomic.Int64
		var last *Store
		return storetest.Harness{
			Open: func() storetest.Handle {
				if last == nil {
					last = NewMemory(func() time.Time { return start.Add(time.Duration(slept.Load())) })
				} else {
					last = last.Reopen()
				}
				return last
			},
			Sleep: func(d time.Duration) { slept.Add(int64(d)) },
		}
	})
}

var start = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

// directory is an empty one: in memory if there is such a file system, as nothing here
// depends on what a disk does when its power fails.
func directory(t testing.TB) string {
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

// oneReader leaves a store one connection for reading until the function that it returns is called:
// each connection parses the schema and the statements.
func oneReader(s *Store) (end func()) {
	var spare []*connection
	for range readers - 1 {
		spare = append(spare, <-s.database.readers)
	}
	return func() {
		for _, c := range spare {
			s.database.readers <- c
		}
	}
}

// kill ends the store as a crash of the process does.
func (s *Store) kill() {
	s.database.closeOnce.Do(func() { s.database.closed = s.database.end(false) })
}
