// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/feedpollard/pollard/cache/store"
)

func sampleState() *state {
	s := &state{version: 1}
	s.memo.Version = *sample()
	return s
}

func TestMemoryGivesTheVersionOfTheStateOnly(t *testing.T) {
	m, err := newMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	s := sampleState()
	m.put(newRepresentation(store.ID{7}, s, rankGzip, []byte(strings.Repeat("a feed ", 100))))
	m.cache.Wait()
	for name, c := range map[string]struct {
		id     store.ID
		change func(*state)
		rank   int
		want   bool
	}{
		"the same":                             {store.ID{7}, func(*state) {}, rankGzip, true},
		"another feed":                         {store.ID{8}, func(*state) {}, rankGzip, false},
		"the same bytes once more":             {store.ID{7}, func(s *state) { s.version++ }, rankGzip, true},
		"other bytes":                          {store.ID{7}, func(s *state) { s.memo.Version.Tag = "other" }, rankGzip, false},
		"another coding":                       {store.ID{7}, func(*state) {}, rankIdentity, false},
		"a new origin's tag of the same bytes": {store.ID{7}, func(s *state) { s.memo.Version.OriginTag = "other" }, rankGzip, true},
	} {
		s := sampleState()
		c.change(s)
		if got := m.get(c.id, s, c.rank) != nil; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// However many versions feeds have had, the present ones are in memory where there is
// room for them.
func TestMemoryHoldsPresentVersions(t *testing.T) {
	const feeds, versions = 200, 60
	m, err := newMemory(2 << 20) // twice what the present ones take
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	body := make([]byte, 4000)
	for version := range versions {
		s := sampleState()
		s.memo.Version.Tag = strconv.Itoa(version)
		for i := range feeds {
			m.put(newRepresentation(store.ID{byte(i)}, s, rankBrotli, body))
		}
		m.cache.Wait()
		for i := range feeds {
			for range 3 { // so that each version is well known when the next one comes
				if m.get(store.ID{byte(i)}, s, rankBrotli) == nil {
					t.Fatalf("version %d of feed %d is not in memory", version, i)
				}
			}
		}
	}
}

// What is too large for the budget is held once while somebody uses it, and not
// at all afterwards.
func TestMemoryHoldsWhatIsInUseOnce(t *testing.T) {
	m, err := newMemory(1000)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	s := sampleState()
	r := newRepresentation(store.ID{7}, s, rankGzip, make([]byte, 1<<20))
	m.put(r)
	m.cache.Wait()
	if got := m.get(store.ID{7}, s, rankGzip); got != r {
		t.Errorf("got %p, want what is in use", got)
	}
	runtime.KeepAlive(r)
	r = nil
	for range 10 {
		runtime.GC()
	}
	if m.get(store.ID{7}, s, rankGzip) != nil {
		t.Error("it is still held")
	}
}

// Whoever closes the memory must not crash readers who still ask for feeds.
func TestMemoryIsClosedUnderItsReaders(t *testing.T) {
	for range 20 {
		m, err := newMemory(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for key := range byte(8) {
			wg.Go(func() {
				s := sampleState()
				for {
					select {
					case <-stop:
						return
					default:
						m.put(newRepresentation(store.ID{key}, s, rankGzip, []byte("a feed")))
						m.get(store.ID{key}, s, rankGzip)
					}
				}
			})
		}
		m.close()
		close(stop)
		wg.Wait()
	}
}
