// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
	"github.com/feedpollard/pollard/figures"
)

// counting is a store that keeps figures as well.
func counting(t *testing.T, s store.Store) figures.Store {
	t.Helper()
	f, ok := s.(figures.Store)
	if !ok {
		t.Skipf("%T keeps no figures", s)
	}
	return f
}

func ref(key string) figures.Ref { return figures.Ref{Kind: figures.Origin, Key: key} }

func addFigures(t *testing.T, s figures.Store, b *figures.Batch) {
	t.Helper()
	if b.At.IsZero() {
		b.At = time.Unix(1_800_000_000, 0)
	}
	if err := s.AddFigures(t.Context(), b); err != nil {
		t.Fatalf("AddFigures: %v", err)
	}
}

func wantFigures(t *testing.T, s figures.Store, prefix string, want ...figures.Figure) {
	t.Helper()
	got, err := s.Figures(t.Context(), figures.Origin, prefix)
	if err != nil {
		t.Fatalf("Figures: %v", err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d figures of %q, want %d: %+v", len(got), prefix, len(want), got)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("figure %d is\n%+v, want\n%+v", i, got[i], want[i])
		}
	}
}

func figuresAddUp(t *testing.T, h Harness) {
	s := h.Open()
	f := counting(t, s)
	wantFigures(t, f, "")
	large := int64(1) << 60
	addFigures(t, f, &figures.Batch{Node: "one", Number: 1, Add: []figures.Figure{
		{Ref: ref("a"), Counts: []int64{1, -2, large}, Peaks: []int64{10, 7}, Bits: []byte{1, 0, 0, 0}, Label: []byte("older")},
		{Ref: ref("a"), Counts: []int64{1}, Peaks: []int64{9, 8, 5}, Label: []byte("oldest")},
		{Ref: ref("\x00\xff'key")},
		{Ref: figures.Ref{Kind: figures.Day, Key: "a"}, Counts: []int64{100}},
	}})
	addFigures(t, f, &figures.Batch{Node: "one", Number: 2, Add: []figures.Figure{
		{Ref: ref("a"), Counts: []int64{10, 0, 0, 0, 4}, Peaks: []int64{11}, Bits: []byte{2, 0, 0, 0, 0, 0, 0x80}, Label: []byte("newest \xff")},
	}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantFigures(t, counting(t, h.open(t)), "",
		figures.Figure{Ref: ref("\x00\xff'key")},
		figures.Figure{
			Ref: ref("a"), Counts: []int64{12, -2, large, 0, 4}, Peaks: []int64{11, 8, 5},
			Bits: []byte{3, 0, 0, 0, 0, 0, 0x80}, Label: []byte("newest \xff"),
		})
}

func batchesOnce(t *testing.T, h Harness) {
	s := h.Open()
	one := &figures.Batch{Node: "one", Number: 7, Add: []figures.Figure{{Ref: ref("a"), Counts: []int64{1}}}}
	addFigures(t, counting(t, s), one)
	addFigures(t, counting(t, s), one)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f := counting(t, h.open(t))
	addFigures(t, f, one)
	addFigures(t, f, &figures.Batch{Node: "one", Number: 6, Add: one.Add, Move: []figures.Move{{From: ref("a")}}})
	addFigures(t, f, &figures.Batch{Node: "two", Number: 7, Add: one.Add})
	wantFigures(t, f, "", figures.Figure{Ref: ref("a"), Counts: []int64{2}})

	if moves, err := figures.Senders(t.Context(), f, one.At); err != nil || len(moves) != 0 {
		t.Errorf("nodes that have been away: %v, %v", moves, err)
	}
	moves, err := figures.Senders(t.Context(), f, one.At.Add(time.Second))
	if err != nil || len(moves) != 2 {
		t.Errorf("nodes that have been away: %v, %v, want two", moves, err)
	}
}

func figuresMove(t *testing.T, h Harness) {
	f := counting(t, h.open(t))
	addFigures(t, f, &figures.Batch{Node: "one", Number: 1, Add: []figures.Figure{
		{Ref: ref("a"), Counts: []int64{1}}, {Ref: ref("b"), Counts: []int64{2}}, {Ref: ref("c"), Counts: []int64{4}}, {Ref: ref("d"), Counts: []int64{8}},
	}})
	addFigures(t, f, &figures.Batch{
		Node: "one", Number: 2,
		Add: []figures.Figure{{Ref: ref("b"), Counts: []int64{16}}},
		Move: []figures.Move{
			{From: ref("a"), Into: "rest"}, {From: ref("b"), Into: "rest"}, {From: ref("b"), Into: "rest"},
			{From: ref("c")}, {From: ref("d"), Into: "d"}, {From: ref("unknown"), Into: "rest"},
		},
	})
	wantFigures(t, f, "", figures.Figure{Ref: ref("d"), Counts: []int64{8}}, figures.Figure{Ref: ref("rest"), Counts: []int64{19}})
}

func figuresByKey(t *testing.T, h Harness) {
	f := counting(t, h.open(t))
	var want []figures.Figure
	b := &figures.Batch{Node: "one", Add: []figures.Figure{{Ref: ref("\xfe")}, {Ref: ref("\xff")}, {Ref: ref("\xff\xff\x01")}, {Ref: ref("\xff\xff")}}}
	for i := range 5000 { // several pages of any store
		if len(b.Add) == figures.MaxBatch {
			b.Number++
			addFigures(t, f, b)
			b.Add = b.Add[:0]
		}
		r := figures.Figure{Ref: ref(fmt.Sprintf("key %06d", i)), Counts: []int64{int64(i)}}
		want = append(want, r)
		b.Add = append(b.Add, r)
	}
	b.Number++
	addFigures(t, f, b)
	wantFigures(t, f, "key ", want...)
	wantFigures(t, f, "key 00012", want[120:130]...)
	wantFigures(t, f, "key 000120", want[120])
	wantFigures(t, f, "other")
	wantFigures(t, f, "\xff\xff", figures.Figure{Ref: ref("\xff\xff")}, figures.Figure{Ref: ref("\xff\xff\x01")})
}

func nodesCount(t *testing.T, h Harness) {
	stores := []figures.Store{counting(t, h.open(t))}
	if h.Shared {
		stores = append(stores, counting(t, h.open(t)))
	}
	const nodes, batches = 4, 25
	var all sync.WaitGroup
	for node := range nodes {
		all.Go(func() {
			for i := range batches {
				err := stores[node%len(stores)].AddFigures(t.Context(), &figures.Batch{
					Node: fmt.Sprint(node), Number: uint64(i + 1), At: time.Now(),
					// In another order each, and some that are not there yet.
					Add: []figures.Figure{
						{Ref: ref(fmt.Sprint((node + i) % 3)), Counts: []int64{1}},
						{Ref: ref(fmt.Sprint((node + i + 1) % 3)), Counts: []int64{1}},
						{Ref: ref(fmt.Sprint((node + i + 2) % 3)), Counts: []int64{1}},
					},
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, s := range stores {
		sum := []int64{nodes * batches}
		wantFigures(t, s, "", figures.Figure{Ref: ref("0"), Counts: sum}, figures.Figure{Ref: ref("1"), Counts: sum}, figures.Figure{Ref: ref("2"), Counts: sum})
	}
}

func seedStays(t *testing.T, h Harness) {
	s := h.Open()
	first, err := counting(t, s).FigureSeed(t.Context())
	if err != nil || first == 0 {
		t.Fatalf("FigureSeed = %d, %v", first, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := counting(t, h.open(t)).FigureSeed(t.Context())
	if err != nil || again != first {
		t.Errorf("FigureSeed = %d, %v, and was %d", again, err, first)
	}
}
