// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/feedpollard/pollard/cache/feedstate"
	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/cache/version"
)

func sampleState() *feedstate.State {
	s := &feedstate.State{Version: 1}
	s.Feed.Version.Version = version.Version{Tag: "0123456789abcdef", Coding: "gzip"}
	return s
}

func TestMemoryGivesTheVersionOfTheStateOnly(t *testing.T) {
	m, err := newMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	s := sampleState()
	m.add(store.ID{7}, s, version.Gzip, []byte(strings.Repeat("a feed ", 100)))
	for name, c := range map[string]struct {
		id     store.ID
		change func(*feedstate.State)
		coding version.Coding
		want   bool
	}{
		"the same":                 {store.ID{7}, func(*feedstate.State) {}, version.Gzip, true},
		"another feed":             {store.ID{8}, func(*feedstate.State) {}, version.Gzip, false},
		"the same bytes once more": {store.ID{7}, func(s *feedstate.State) { s.Version++ }, version.Gzip, true},
		"other bytes":              {store.ID{7}, func(s *feedstate.State) { s.Feed.Version.Tag = "other" }, version.Gzip, false},
		"another coding":           {store.ID{7}, func(*feedstate.State) {}, version.Identity, false},
	} {
		s := sampleState()
		c.change(s)
		if got := m.get(c.id, s, c.coding) != nil; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// However many versions feeds have had, the present ones are in memory if there is
// room for them.
func TestMemoryHoldsPresentVersions(t *testing.T) {
	const feeds, versions = 200, 60
	m, err := newMemory(2 << 20) // twice what the present ones take
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	body := make([]byte, 4000)
	for n := range versions {
		s := sampleState()
		s.Feed.Version.Tag = strconv.Itoa(n)
		for i := range feeds {
			m.add(store.ID{byte(i)}, s, version.Gzip, body)
		}
		for i := range feeds {
			for range 3 { // so that each version is well known when the next one comes
				if m.get(store.ID{byte(i)}, s, version.Gzip) == nil {
					t.Fatalf("version %d of feed %d is not in memory", n, i)
				}
			}
		}
	}
}

// Closing the memory must not crash readers that still request feeds.
func TestMemoryIsClosedUnderItsReaders(t *testing.T) {
	for range 5 {
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
						m.add(store.ID{key}, s, version.Gzip, []byte("a feed"))
						m.get(store.ID{key}, s, version.Gzip)
					}
				}
			})
		}
		m.close()
		close(stop)
		wg.Wait()
	}
}
