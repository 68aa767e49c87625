// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/feedpollard/pollard/cache"
	"github.com/feedpollard/pollard/figures"
	"github.com/feedpollard/pollard/internal/readers"
	"github.com/feedpollard/pollard/internal/status"
)

// shaky is a store that fails at times: before it has done anything, or after.
type shaky struct {
	*figures.Memory
	mu      sync.Mutex
	chances *rand.Rand // nil: all goes well
}

var errAway = errors.New("the store is away")

func (s *shaky) fails() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chances != nil && s.chances.IntN(3) == 0
}

func (s *shaky) AddFigures(ctx context.Context, b *figures.Batch) error {
	if s.fails() {
		return errAway
	}
	if err := s.Memory.AddFigures(ctx, b); err != nil {
		return err
	}
	if s.fails() {
		return errAway
	}
	return nil
}

func (s *shaky) heal() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chances = nil
}

// asked lets an engine answer a request, and count a poll.
func asked(e *Engine, at time.Time) {
	e.metrics.gateway.Count(ResultHit, 100)
	e.Ledger.Note(readers.Request{
		Time: at, Feed: "https://example.com/feed", UserAgent: "A/1", Client: netip.MustParseAddr("192.0.2.1"),
		Method: "GET", Status: 200, Bytes: 100,
	})
	e.traffic.countPoll(&cache.Poll{URL: "https://example.com/feed", Result: status.ResultNew, Wire: 7})
}

// Several nodes count what comes exactly once, however often the store fails and the
// nodes are replaced.
func TestNodesCountOnce(t *testing.T) {
	for seed := range uint64(10) {
		memory := new(figures.Memory)
		s := &shaky{Memory: memory, chances: rand.New(rand.NewPCG(seed, 2))}
		nodes := []*Engine{newEngine(Parts{}), newEngine(Parts{})}
		for _, e := range nodes {
			e.log.Store(zap.NewNop())
			e.books.open(t.Context(), s, zap.NewNop())
		}
		r := rand.New(rand.NewPCG(seed, 3))
		at := time.Now()
		const requests = 200
		for i := range requests {
			n := r.IntN(len(nodes))
			asked(nodes[n], at.Add(time.Duration(i)*time.Second))
			switch r.IntN(6) {
			case 0:
				nodes[n].books.flush(t.Context())
			case 1:
				nodes[n].Traffic(t.Context(), "")
			}
		}
		s.heal()
		for i, e := range nodes {
			if i == 0 {
				e.books.close() // as at the end of the process
				e = newEngine(Parts{})
				e.log.Store(zap.NewNop())
				e.books.open(t.Context(), s, zap.NewNop())
				nodes[0] = e
			}
			e.books.flush(t.Context())
		}
		for i, e := range nodes {
			a := e.Traffic(t.Context(), "")
			want := Traffic{requests, requests, requests * 100, requests * 7}
			if a.Total != want || a.Origins["https://example.com"] != want {
				t.Errorf("seed %d: node %d counts %+v, want %+v", seed, i, a, want)
			}
			report := e.Readers(t.Context(), readers.ReportOptions{})
			if report.Total.Requests != requests || len(report.Readers) != 1 {
				t.Errorf("seed %d: node %d knows of %d requests by %d readers", seed, i, report.Total.Requests, len(report.Readers))
			}
			e.books.close()
		}
	}
}

// While the store is away pages show what this node knows, and nothing piles up.
func TestStoreOfFiguresIsAway(t *testing.T) {
	s := &shaky{Memory: new(figures.Memory)}
	e := newEngine(Parts{})
	e.log.Store(zap.NewNop())
	e.books.open(t.Context(), s, zap.NewNop())
	defer e.books.close()
	now := time.Now()
	asked(e, now)
	e.Traffic(t.Context(), "")
	e.Readers(t.Context(), readers.ReportOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // the store refuses everything
	for i := range 100 {
		asked(e, now.Add(time.Duration(i+1)*time.Minute))
		e.books.flush(ctx)
	}
	e.books.mu.Lock()
	if n := len(e.books.unsent); n != 1 {
		t.Errorf("%d batches wait, want the first", n)
	}
	e.books.mu.Unlock()
	if report := e.Readers(ctx, readers.ReportOptions{}); report.Total.Requests != 101 {
		t.Errorf("%d requests are known", report.Total.Requests)
	}
	if a := e.Traffic(t.Context(), ""); a.Total.Requests != 101 || a.Total.Polls != 101 {
		t.Errorf("%+v", a.Total)
	}
}

// slow is a store that is read when it is let.
type slow struct {
	*figures.Memory
	let chan struct{}
}

func (s *slow) Figures(ctx context.Context, kind figures.Kind, prefix string) ([]figures.Figure, error) {
	<-s.let
	return s.Memory.Figures(ctx, kind, prefix)
}

// Whoever asks for a feed's subscribers just after a start is told of all, and not of
// those that have come since.
func TestSubscribersAreKnownFromTheStart(t *testing.T) {
	const feed = "https://example.com/feed"
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Memory: new(figures.Memory), let: make(chan struct{})}
		let := func() { time.AfterFunc(time.Second, func() { close(store.let) }) }
		for i, want := range []int{1, 2} {
			e := newEngine(Parts{})
			e.log.Store(zap.NewNop())
			e.books.open(t.Context(), store, zap.NewNop())
			e.Census.Use(1) // by which the two are told apart
			e.Census.Tally(feed).Note("A/1", netip.AddrFrom4([4]byte{192, 0, byte(i), 1}))
			impatient, cancel := context.WithCancel(t.Context())
			cancel()
			if n := e.Subscribers(impatient, feed); n != 1 {
				t.Errorf("start %d: %d before the store was read, want 1", i, n)
			}
			let()
			if n := e.Subscribers(t.Context(), feed); n != want {
				t.Errorf("start %d: %d, want %d", i, n, want)
			}
			e.books.close()
			store.let = make(chan struct{})
		}
	})
}

// With no_readers nothing of them is stored.
func TestNoReadersAreStored(t *testing.T) {
	for _, off := range []bool{false, true} {
		memory := new(figures.Memory)
		e := newEngine(Parts{})
		e.log.Store(zap.NewNop())
		e.unobserved.Store(off)
		e.books.open(t.Context(), memory, zap.NewNop())
		e.Census.Tally("https://example.com/feed").Note("A/1", netip.MustParseAddr("192.0.2.1"))
		e.books.close()
		tallies, err := memory.Figures(t.Context(), figures.Tally, "")
		if err != nil || (len(tallies) == 0) != off {
			t.Errorf("off %t: %d bitmaps, %v", off, len(tallies), err)
		}
	}
}

// What is long ago, or too much, counts in the sum alone.
func TestTrafficIsBounded(t *testing.T) {
	now := time.Now()
	memory := new(figures.Memory)
	var days, origins []figures.Figure
	for i := range trafficDays + 100 {
		day := account{"blog", today(now.AddDate(0, 0, -i))}
		days = append(days, figures.Figure{Ref: figures.Ref{Kind: figures.Day, Key: day.key()}, Counts: []int64{1, 2, 3, 4}, Peaks: []int64{int64(-i)}})
	}
	for i := range trafficOrigins + 100 {
		one := account{"", "https://" + string(rune('a'+i%26)) + time.Duration(i).String()}
		origins = append(origins, figures.Figure{Ref: figures.Ref{Kind: figures.Origin, Key: one.key()}, Counts: []int64{1, 2, 3, 4}, Peaks: []int64{int64(i)}})
	}
	e := newEngine(Parts{})
	e.log.Store(zap.NewNop())
	e.books.open(t.Context(), memory, zap.NewNop())
	defer e.books.close()
	e.books.mu.Lock()
	e.books.add(append(days, origins...), nil, now)
	err := e.books.send(t.Context())
	e.books.mu.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if err := memory.AddFigures(t.Context(), &figures.Batch{Node: fmt.Sprint("node ", i), Number: 1, At: now, Move: outdatedTraffic(days, origins, now)}); err != nil {
			t.Fatal(err)
		}
		e.books.flush(t.Context())
		shield := e.Traffic(t.Context(), "blog")
		if n := int64(len(days)); len(shield.Days) != trafficDays+1 || shield.Total != (Traffic{n, 2 * n, 3 * n, 4 * n}) {
			t.Errorf("%d days, %+v", len(shield.Days), shield.Total)
		}
		if all := e.Traffic(t.Context(), ""); len(all.Origins) != trafficOrigins {
			t.Errorf("%d origins", len(all.Origins))
		}
	}
}
