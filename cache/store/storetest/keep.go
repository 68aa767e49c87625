// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// kill ends the store after each kind of call that has to be durable.
func kill(t *testing.T, h Harness) {
	if h.Kill == nil {
		t.Skip("no way to kill this store")
	}
	s := h.open(t)
	again := func() {
		h.Kill(s)
		s = h.open(t)
	}
	c := Claim(1)
	c.Host, c.Configured = host("one"), true
	first := Grant(t, s, c)
	again()
	deny(t, s, Claim(1), store.DeniedNotDue, time.Hour)
	c = Claim(2)
	c.Host = host("one")
	deny(t, s, c, store.DeniedBusy, time.Minute)

	o := Outcome(first, Text(1, "content"))
	o.In = time.Minute
	Commit(t, s, o)
	again()
	wantBody(t, s, 1, o.Body)
	touch(t, s, 1, 0)
	h.Sleep(2 * time.Minute)
	leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 1, Idle: time.Hour})
	if err != nil || len(leases) != 1 {
		t.Fatalf("ClaimDue = %+v, %v", leases, err)
	}
	again()
	if got := lookup(t, s, 1); got.Token != leases[0].Token || !near(got.In, time.Hour) {
		t.Errorf("after a kill: %+v, want token %d", got, leases[0].Token)
	}

	o = Outcome(leases[0], nil)
	o.Pauses = []store.Pause{{Scope: "host two", For: time.Hour}}
	Commit(t, s, o)
	again()
	if p, err := s.Pauses(t.Context()); err != nil || len(p) != 1 || p[0].Scope != "host two 1" || !near(p[0].For, time.Hour) {
		t.Errorf("Pauses = %+v, %v, want %+v", p, err, o.Pauses)
	}

	// Outcomes that put the next poll off further than the claim did, or that the origin asked for.
	for n, o := range []store.Outcome{
		{In: 7 * 24 * time.Hour, Claimed: time.Hour}, {In: time.Minute, NotBefore: 24 * time.Hour}, {In: store.Ended, Claimed: time.Hour},
	} {
		o.ID, o.Token = idOf(10+n), Grant(t, s, Claim(10+n)).Token
		Commit(t, s, o)
		again()
		if r := lookup(t, s, 10+n); r.In < o.In-time.Minute || r.NotBefore < o.NotBefore-time.Minute {
			t.Errorf("outcome %d after a kill: next poll in %v, not before %v", n, r.In, r.NotBefore)
		}
	}

	hop := store.Hop{ID: idOf(5), Floor: time.Hour, Host: host("five")}
	if p, err := s.Hop(t.Context(), hop); err != nil || p.Denied != "" {
		t.Fatalf("Hop = %+v, %v", p, err)
	}
	again()
	c = Claim(6)
	c.Host = host("five")
	deny(t, s, c, store.DeniedBusy, time.Minute)
	if p, err := s.Hop(t.Context(), hop); err != nil || p.Denied != store.DeniedNotDue {
		t.Fatalf("Hop = %+v, %v, want %q", p, err, store.DeniedNotDue)
	}

	if err := s.Forget(t.Context(), idOf(1)); err != nil {
		t.Fatal(err)
	}
	again()
	wantUnknown(t, s, 1)
	h.Sleep(3 * time.Hour)
	if got := Grant(t, s, Claim(1)).Token; got == leases[0].Token || got == first.Token {
		t.Errorf("token %d came again", got)
	}
}

func bodies(t *testing.T, h Harness) {
	s := h.open(t)
	large := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{1}).Read(large)
	for n, body := range []*store.Body{
		{Version: 1, Coding: "gzip", Data: large},
		{Version: 1<<63 - 1, Coding: "identity", Data: []byte{0}},
		{Version: 1, Coding: "gzip", Data: []byte("nothing else")},
	} {
		commitBody(t, s, n, body)
		wantBody(t, s, n, body)
	}
	l := Grant(t, s, Claim(9))
	if err := s.Commit(t.Context(), Outcome(l, Text(0, "x"))); err == nil {
		t.Error("a body of version 0 was taken")
	}
	Commit(t, s, Outcome(l, nil))
	if r := lookup(t, s, 9); r.Version != 0 || string(r.FeedState) != "memo" {
		t.Errorf("without a body: %+v", r)
	}
	_, err := store.ReadBody(t.Context(), s, idOf(9))
	wantError(t, "Body", err, store.ErrNoBody)
}

// replacedWhileSent reads a body part by part while others follow. Its parts can be read for
// a minute, and what is read later is damaged in no way that goes unnoticed.
func replacedWhileSent(t *testing.T, h Harness) {
	s := h.open(t)
	old := Text(1, strings.Repeat("an old part ", store.PartSize/4))
	commitBody(t, s, 1, old)
	b, err := s.Body(t.Context(), idOf(1))
	if err != nil || b.Parts() != 3 || b.Size != int64(len(old.Data)) {
		t.Fatalf("Body = %d parts, %v", b.Parts(), err)
	}
	for v := range uint64(4) {
		h.Sleep(3 * time.Hour)
		commitBody(t, s, 1, Text(v+2, strings.Repeat("new", store.PartSize)))
		if v > 0 { // it was replaced hours ago
			_, err = s.Sweep(t.Context(), store.SweepQuery{})
		}
		data, failed := b.Data(t.Context())
		if v == 0 && failed != nil || failed != nil && !errors.Is(failed, store.ErrNoBody) || failed == nil && string(data) != string(old.Data) || err != nil {
			t.Errorf("after %d more versions: %d bytes, %v, %v", v+1, len(data), failed, err)
		}
	}
	wantBody(t, s, 1, Text(5, strings.Repeat("new", store.PartSize)))
}

// sweepMany holds a store to sweeping all that it has to, however it divides them.
func sweepMany(t *testing.T, h Harness) {
	const many = 1201
	s := h.open(t)
	var saved []store.Saved
	for n := range many {
		saved = append(saved, store.Saved{Record: store.Record{ID: idOf(n), URL: Claim(n).URL, Polled: -1, State: store.StateCold}})
	}
	if err := s.Restore(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
	h.Sleep(time.Hour)
	touch(t, s, 0, 0)
	gone, err := s.Sweep(t.Context(), store.SweepQuery{Unread: 30 * time.Minute})
	if err != nil || len(gone) != many-1 {
		t.Errorf("Sweep = %d feeds, %v, want %d", len(gone), err, many-1)
	}
	if left, err := s.Records(t.Context(), store.ID{}, many); err != nil || len(left) != 1 {
		t.Errorf("%d records are left, %v, want 1", len(left), err)
	}
}

// trimConcurrently has two nodes make room at the same moment. They drop no more than one would.
func trimConcurrently(t *testing.T, h Harness) {
	const feeds, size = 60, 50_000
	s := [2]store.Store{h.open(t)}
	if s[1] = s[0]; h.Shared {
		s[1] = h.open(t)
	}
	for n := range feeds {
		c := Claim(n)
		c.By = store.OwnerOf(store.KindPublic, fmt.Sprint(n%7))
		Commit(t, s[0], Outcome(Grant(t, s[0], c), Text(1, strings.Repeat("x", size))))
	}
	for part := int64(4); part > 1; part-- {
		before, err := s[0].Totals(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		budget := before.Used - before.Bytes/part
		var wg sync.WaitGroup
		for n := range 6 {
			wg.Go(func() {
				if _, err := s[n%2].Trim(t.Context(), budget); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if after, err := s[1].Totals(t.Context()); err != nil || after.Used > budget || after.Used < budget-3*size {
			t.Errorf("%d bytes are used, %v, want %d", after.Used, err, budget)
		}
	}
}

// restoreNew holds a store to leaving alone what is there already, and to what it remembers of a
// feed that was forgotten.
func restoreNew(t *testing.T, h Harness) {
	s := h.open(t)
	Grant(t, s, Claim(2))
	wantError(t, "Forget", s.Forget(t.Context(), idOf(2)), nil)
	again := store.Saved{New: true, Record: store.Record{ID: idOf(2), URL: Claim(2).URL, Hold: time.Hour, Polled: -1, State: store.StateCold, Configured: true}}
	wantError(t, "Restore", s.Restore(t.Context(), []store.Saved{again}), nil)
	deny(t, s, Claim(2), store.DeniedNotDue, time.Hour)
	c := Claim(1)
	saved := store.Saved{New: true, Record: store.Record{ID: c.ID, URL: c.URL, Polled: -1, State: store.StateCold, Configured: true}}
	for range 2 {
		wantError(t, "Restore", s.Restore(t.Context(), []store.Saved{saved}), nil)
	}
	l := Grant(t, s, c)
	wantError(t, "Restore", s.Restore(t.Context(), []store.Saved{saved}), nil)
	Commit(t, s, Outcome(l, Text(1, "content"))) // it has not been fenced off
	deny(t, s, c, store.DeniedNotDue, 2*time.Hour)
	wantError(t, "Restore", s.Restore(t.Context(), []store.Saved{saved}), nil)
	wantBody(t, s, 1, Text(1, "content"))
}

// configuredForATime has one node say that it has feeds in its configuration, and another one that has not poll them.
// A feed that was known before has its place then; two days after the last word its rank is that of its readers.
func configuredForATime(t *testing.T, h Harness) {
	s := h.open(t)
	c := Claim(1)
	c.By = store.OwnerOf(store.KindPublic, "203.0.113.0")
	l := Grant(t, s, c)
	wantError(t, "Commit", s.Commit(t.Context(), store.Outcome{ID: c.ID, Token: l.Token, In: time.Hour, State: store.StateCold}), nil)
	list := make([]store.Saved, 2)
	for i := range list {
		id, url := Feed(i + 1)
		list[i] = store.Saved{New: true, Record: store.Record{ID: id, URL: url, Hold: time.Hour, Polled: -1, State: store.StateCold, Configured: true}}
	}
	configured := func(want ...store.ID) {
		t.Helper()
		slices.SortFunc(want, store.ID.Compare)
		if got, err := s.Configured(t.Context()); err != nil || !slices.Equal(got, want) {
			t.Errorf("Configured = %x, %v, want %x", got, err, want)
		}
	}
	rank := func(want store.Rank) {
		t.Helper()
		records, err := s.Lookup(t.Context(), []store.ID{c.ID})
		if err != nil || len(records) != 1 || records[0].Rank != want || records[0].Configured != (want == store.RankOperator) {
			t.Errorf("the feed is %+v, %v, want rank %d", records, err, want)
		}
	}
	sweep := func() {
		t.Helper()
		if gone, err := s.Sweep(t.Context(), store.SweepQuery{Idle: time.Hour, Unread: time.Hour}); err != nil || len(gone) > 0 {
			t.Errorf("Sweep = %x, %v", gone, err)
		}
	}
	rank(store.RankPublicNew)
	configured()
	wantError(t, "Restore", s.Restore(t.Context(), list), nil)
	configured(list[0].ID, list[1].ID)
	rank(store.RankOperator)
	for range 4 { // the other node polls them
		h.Sleep(20 * time.Hour)
		sweep()
		leases, _, err := s.ClaimDue(t.Context(), store.DueQuery{Limit: 10})
		if err != nil || len(leases) != 2 {
			t.Fatalf("ClaimDue = %d leases, %v, want those of both feeds", len(leases), err)
		}
		wantError(t, "Restore", s.Restore(t.Context(), list), nil)
	}
	configured(list[0].ID, list[1].ID)
	h.Sleep(25 * time.Hour)
	wantError(t, "Restore", s.Restore(t.Context(), list[1:]), nil)
	configured(list[1].ID)
	rank(store.RankOperator)
	h.Sleep(23*time.Hour + 30*time.Minute)
	if _, err := s.Sweep(t.Context(), store.SweepQuery{Idle: 30 * 24 * time.Hour, Unread: 30 * 24 * time.Hour}); err != nil {
		t.Error(err)
	}
	rank(store.RankPublicNew)
	configured(list[1].ID)
}

func cancelled(t *testing.T, h Harness) {
	s := h.open(t)
	commitBody(t, s, 1, Text(1, "content"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	h.Sleep(3 * time.Hour)
	for what, err := range calls(ctx, s) {
		wantError(t, what, err, context.Canceled)
	}
	if r := lookup(t, s, 1); r.In > 0 {
		t.Errorf("something happened: %+v", r)
	}
	wantBody(t, s, 1, Text(1, "content"))
	wantUnknown(t, s, 2)
}

func closed(t *testing.T, h Harness) {
	s := h.open(t)
	commitBody(t, s, 1, Text(1, "content"))
	s.Close()
	for what, err := range calls(t.Context(), s) {
		if err == nil {
			t.Errorf("%s worked after Close", what)
		}
	}
	s = h.open(t)
	wantBody(t, s, 1, Text(1, "content"))
	wantUnknown(t, s, 2)
}

// calls makes all calls that there are.
func calls(ctx context.Context, s store.Store) map[string]error {
	errs := make(map[string]error)
	_, errs["Claim"] = s.Claim(ctx, []store.Claim{Claim(1), Claim(2)})
	_, _, errs["ClaimDue"] = s.ClaimDue(ctx, store.DueQuery{Limit: 1})
	_, errs["Hop"] = s.Hop(ctx, store.Hop{ID: idOf(1)})
	errs["Commit"] = s.Commit(ctx, store.Outcome{ID: idOf(1), Token: 1})
	errs["Commit of a body"] = s.Commit(ctx, store.Outcome{ID: idOf(1), Token: 1, Body: Text(2, "other")})
	_, errs["Lookup"] = s.Lookup(ctx, []store.ID{idOf(1)})
	_, errs["Body"] = store.ReadBody(ctx, s, idOf(1))
	_, errs["Records"] = s.Records(ctx, store.ID{}, 1)
	errs["Touch"] = s.Touch(ctx, map[store.ID]store.Asked{idOf(1): {}})
	errs["Forget"] = s.Forget(ctx, idOf(1))
	_, errs["Configured"] = s.Configured(ctx)
	_, errs["Sweep"] = s.Sweep(ctx, store.SweepQuery{Idle: 1})
	_, errs["Trim"] = s.Trim(ctx, 0)
	errs["Restore"] = s.Restore(ctx, []store.Saved{{Record: store.Record{ID: idOf(2)}}})
	_, errs["Pauses"] = s.Pauses(ctx)
	_, errs["Secret"] = s.Secret(ctx)
	errs["Watch"] = s.Watch(ctx, func(store.Change) error { return nil })
	_, errs["Totals"] = s.Totals(ctx)
	errs["SaveCounters"] = s.SaveCounters(ctx, "node", []byte("data"))
	_, errs["Counters"] = s.Counters(ctx)
	return errs
}

// recordsGiveWay has strangers add feeds that have large records, beside feeds of a token and of the operator. Those of
// strangers are forgotten, and their last poll counts.
func recordsGiveWay(t *testing.T, h Harness) {
	s := h.open(t)
	const strangers, size, budget = 300, 6000, 1 << 20
	add := func(n int, by store.Owner, body *store.Body) {
		t.Helper()
		c := Claim(n)
		c.By, c.Configured = by, by == store.Operator
		o := Outcome(Grant(t, s, c), body)
		o.FeedState = make([]byte, size)
		Commit(t, s, o)
	}
	add(0, store.Operator, Text(1, strings.Repeat("x", size)))
	add(1, store.OwnerOf(store.KindToken, "a"), Text(1, strings.Repeat("x", size)))
	for n := range strangers {
		add(2+n, store.OwnerOf(store.KindPublic, fmt.Sprint(n%3)), Text(1, "x"))
	}
	gone, err := s.Trim(t.Context(), budget)
	totals, failed := s.Totals(t.Context())
	if err != nil || failed != nil || totals.Used > budget || len(gone) < strangers/3 || len(gone) == strangers {
		t.Fatalf("%d feeds gave way, %+v, %v, %v", len(gone), totals, err, failed)
	}
	for n := range 2 {
		wantBody(t, s, n, Text(1, strings.Repeat("x", size)))
	}
	forgotten := 0
	for n := range strangers {
		if records, err := s.Lookup(t.Context(), []store.ID{idOf(2 + n)}); err == nil && len(records) == 0 {
			forgotten++
			deny(t, s, Claim(2+n), store.DeniedNotDue, time.Hour)
		}
	}
	if forgotten != len(gone) {
		t.Errorf("%d feeds gave way, %d are forgotten", len(gone), forgotten)
	}
	if _, err := s.Trim(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	wantBody(t, s, 0, Text(1, strings.Repeat("x", size)))
	wantUnknown(t, s, 1)
}
