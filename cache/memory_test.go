// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedpollard/pollard/policy"
)

// What is in memory may be of a feed that was forgotten and has come back: its
// versions have the same numbers then.
func TestMemoryGivesTheVersionOfTheStateOnly(t *testing.T) {
	m, err := newMemory(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	p := sample(t, strings.Repeat("a feed ", 100))
	m.put(7, p)
	m.cache.Wait()
	current := func() *state {
		s := &state{Schedule: Schedule{Version: p.version}}
		s.memo.Version = version{Tag: p.tag, OriginTag: p.originTag, LastModified: p.modified}
		return s
	}
	for name, c := range map[string]struct {
		change func(*state)
		want   bool
	}{
		"the same":             {func(*state) {}, true},
		"another number":       {func(s *state) { s.Version++ }, false},
		"other bytes":          {func(s *state) { s.memo.Version.Tag = "other" }, false},
		"another date":         {func(s *state) { s.memo.Version.LastModified = p.modified.Add(time.Second) }, false},
		"the origin's new tag": {func(s *state) { s.memo.Version.OriginTag = "other" }, false},
	} {
		s := current()
		c.change(s)
		if got := m.get(7, ID{}, s) != nil; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if m.get(7, ID{1}, current()) != nil {
		t.Error("gave the version of another feed")
	}
	m.drop(7)
	if m.get(7, ID{}, current()) != nil {
		t.Error("gave what was dropped")
	}
	m.close()
}

// Readers go on asking while the cache is closed.
func TestMemoryIsClosedUnderItsReaders(t *testing.T) {
	p := sample(t, strings.Repeat("a feed ", 100))
	s := &state{Schedule: Schedule{Version: p.version}}
	for range 20 {
		m, err := newMemory(1 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		stop := make(chan struct{})
		for key := range uint64(8) {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						m.put(key, p)
						m.get(key, ID{}, s)
					}
				}
			})
		}
		m.close()
		close(stop)
		wg.Wait()
	}
}

// idleOrigin is never due to say anything of interest.
type idleOrigin struct{ polls atomic.Int64 }

func (o *idleOrigin) Poll(context.Context, policy.Ask) policy.Answer {
	o.polls.Add(1)
	return policy.Answer{Asked: time.Now(), Failure: policy.FailureTimeout}
}
func (o *idleOrigin) Ready(string) (time.Time, string) { return time.Time{}, "" }
func (o *idleOrigin) Hold(string, time.Time, string)   {}

// An entry of the agenda may be older than the feed's state: who creates a feed
// enters it, and somebody may have polled it by then.
func TestFeedOnTheAgendaThatIsNotDueStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := new(idleOrigin)
		c, err := New(Options{Store: nothing{}, Origin: o})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f, err := c.Feed("https://origin.test/")
		if err != nil {
			t.Fatal(err)
		}
		f.board(false)
		synctest.Wait()
		c.agenda.put(f, c.now())
		c.Apply(Settings{Prefetch: true, Feeds: []string{f.url}})
		time.Sleep(12 * time.Hour)
		if o.polls.Load() < 2 {
			t.Errorf("%d polls: the prefetching has lost the feed", o.polls.Load())
		}
	})
}

// nothing is a store that grants and forgets.
type nothing struct{ Store }

func (nothing) Latest(context.Context) (time.Time, error)      { return time.Time{}, nil }
func (nothing) Scan(context.Context, func(Record) error) error { return nil }
func (nothing) Commit(context.Context, Outcome) error          { return nil }
func (nothing) Reserve(_ context.Context, claims []Claim) ([]Grant, error) {
	return []Grant{{OK: true, Schedule: Schedule{Token: claims[0].Token + 1}}}, nil
}
