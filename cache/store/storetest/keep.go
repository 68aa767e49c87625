// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/feedpollard/pollard/cache/store"
)

// kill ends the store after each kind of call that has to be durable. It gives the same answers then as before.
func kill(t *testing.T, h Harness) {
	if h.Kill == nil {
		t.Skip("no way to kill this store")
	}
	if testing.Short() && h.Shared {
		t.Skip("a server takes seconds to recover: walks kill an embedded store")
	}
	s := h.open(t)
	c := Claim(1)
	c.Host, c.Configured = host("one"), true
	lease := Grant(t, s, c)
	tokens := []store.Token{lease.Token}
	commit := func(n int, o store.Outcome) error {
		o.ID, o.Token = idOf(n), Grant(t, s, Claim(n)).Token
		return s.Commit(t.Context(), o)
	}
	for _, step := range []struct {
		what string
		do   func() error
		busy string // the host has just been asked
	}{
		{"a claim", func() error { return nil }, "one"},
		{"a version", func() error {
			o := Outcome(lease, Text(1, "content"))
			o.In = time.Minute
			return s.Commit(t.Context(), o)
		}, ""},
		{"a claim of what is due", func() error {
			h.Sleep(2 * time.Minute)
			leases := Poll(t, s, time.Minute)
			if len(leases) != 1 {
				return fmt.Errorf("%d leases", len(leases))
			}
			lease, tokens = leases[0], append(tokens, leases[0].Token)
			return nil
		}, "one"},
		{"a pause", func() error {
			o := Outcome(lease, nil)
			o.Pauses = []store.Pause{{Site: "two", For: time.Hour}}
			return s.Commit(t.Context(), o)
		}, ""},
		{"a decision beyond the claim", func() error { return commit(10, store.Outcome{In: 7 * 24 * time.Hour, Claimed: time.Hour}) }, ""},
		{"the wish of an origin", func() error { return commit(11, store.Outcome{In: time.Minute, NotBefore: 24 * time.Hour}) }, ""},
		{"a poke", func() error {
			asked := store.Asked{Ago: -1, Poke: &store.Poke{In: 6 * time.Hour}}
			return s.Touch(t.Context(), map[store.ID]store.Asked{idOf(1): asked})
		}, ""},
		{"the end of polling", func() error { return commit(12, store.Outcome{In: store.Ended, Claimed: time.Hour}) }, ""},
		{"a feed that is forgotten", func() error { return s.Forget(t.Context(), idOf(1)) }, ""},
	} {
		wantError(t, step.what, step.do(), nil)
		records, pauses := everything(t, s)
		h.Kill(s)
		s = h.open(t)
		after, pausesAfter := everything(t, s)
		if !slices.EqualFunc(after, records, sameRecord) || !slices.EqualFunc(pausesAfter, pauses, samePause) {
			t.Errorf("%s: after a kill there are\n%+v, %+v, want\n%+v, %+v", step.what, after, pausesAfter, records, pauses)
		}
		if step.busy != "" {
			other := Claim(20)
			other.Host = host(step.busy)
			deny(t, s, other, store.DeniedBusy, time.Minute)
		}
	}
	h.Sleep(3 * time.Hour)
	if got := Grant(t, s, Claim(1)).Token; slices.Contains(tokens, got) {
		t.Errorf("token %d came again", got)
	}
}

// everything returns all records, and pauses. Each version has its body.
func everything(t *testing.T, s store.Store) ([]store.Record, []store.Pause) {
	t.Helper()
	known, err := s.Records(t.Context(), store.ID{}, 100, false)
	forgotten, failed := s.Records(t.Context(), store.ID{}, 100, true)
	pauses, alsoFailed := s.Pauses(t.Context())
	wantError(t, "reading all", errors.Join(err, failed, alsoFailed), nil)
	for _, r := range known {
		if b, err := store.ReadBody(t.Context(), s, r.ID); r.Version != 0 && (err != nil || b.Version != r.Version || string(b.Data) != "content") {
			t.Errorf("Body of version %d = version %d, %q, %v", r.Version, b.Version, b.Data, err)
		}
	}
	return append(known, forgotten...), pauses
}

// samePause compares pauses; durations are near each other.
func samePause(a, b store.Pause) bool {
	return near(a.For, b.For) && a.Site == b.Site && a.New == b.New && a.Why == b.Why && a.Step == b.Step && a.URL == b.URL
}

// large stores what the model has no room for, and what is refused.
func large(t *testing.T, h Harness) {
	if testing.Short() && h.Shared {
		t.Skip("megabytes to a server: an embedded store runs the same")
	}
	s := h.open(t)
	data := make([]byte, 3<<20)
	rand.NewChaCha8([32]byte{1}).Read(data)
	for n, body := range []*store.Body{
		{Version: 1, Coding: "gzip", Data: data},
		{Version: 1<<63 - 1, Coding: "identity", Data: []byte{0}},
	} {
		commitBody(t, s, n, body)
		wantBody(t, s, n, body)
	}
	if err := s.Commit(t.Context(), Outcome(Grant(t, s, Claim(9)), Text(0, "x"))); err == nil {
		t.Error("a body of version 0 was taken")
	}
	counters := make([]byte, store.MaxCounters+1)
	wantError(t, "SaveCounters", s.SaveCounters(t.Context(), "one", counters[1:]), nil)
	wantError(t, "SaveCounters of too much", s.SaveCounters(t.Context(), "one", counters), store.ErrCountersTooLarge)
	if got, err := s.Counters(t.Context()); err != nil || len(got) != 1 || len(got["one"]) != store.MaxCounters {
		t.Errorf("Counters = %d bytes, %v", len(got["one"]), err)
	}
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
	versions := uint64(4)
	if testing.Short() {
		versions = 2
	}
	for v := range versions {
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
	wantBody(t, s, 1, Text(versions+1, strings.Repeat("new", store.PartSize)))
}

// sweepMany holds a store to sweeping all that it has to, however it divides them.
func sweepMany(t *testing.T, h Harness) {
	many := 1201
	if testing.Short() {
		many = 601
	}
	s := h.open(t)
	var saved []store.Saved
	for n := range many {
		saved = append(saved, store.Saved{Record: store.Record{ID: idOf(n), URL: urlOf(n), Polled: -1, State: store.StateCold}})
	}
	wantError(t, "Restore", s.Restore(t.Context(), saved), nil)
	h.Sleep(time.Hour)
	touch(t, s, 0, 0)
	gone, err := s.Sweep(t.Context(), store.SweepQuery{Unread: 30 * time.Minute})
	left, failed := s.Records(t.Context(), store.ID{}, many, false)
	if err != nil || failed != nil || len(gone) != many-1 || len(left) != 1 {
		t.Errorf("Sweep = %d feeds, %v; %d are left, %v", len(gone), err, len(left), failed)
	}
}

// giveWay has strangers fill the store beside a token and the operator, and two nodes make room at the same moment. They drop no
// more than one would, of strangers first and never of the operator. The last poll of a feed that gave way counts.
func giveWay(t *testing.T, h Harness) {
	const strangers, size = 60, 50_000
	s := [2]Handle{h.open(t)}
	if s[1] = s[0]; h.Shared {
		s[1] = h.open(t)
	}
	body := Text(1, strings.Repeat("x", size))
	for n := range strangers + 2 {
		c := Claim(n)
		switch c.By = []store.Owner{store.Any}; n {
		case 0:
			c.By, c.Configured = nil, true
		case 1:
			c.By = []store.Owner{store.OwnerOf(store.KindNamed, "a")}
		}
		o := Outcome(Grant(t, s[0], c), body)
		o.FeedState = make([]byte, size/8)
		Commit(t, s[0], o)
	}
	for part := int64(4); part > 1; part-- {
		before, err := s[0].Totals(t.Context())
		wantError(t, "Totals", err, nil)
		budget := before.Used - before.Bytes/part
		var trims errgroup.Group
		for n := range 6 {
			trims.Go(func() error {
				_, err := s[n%2].Sweep(t.Context(), store.SweepQuery{Disk: budget})
				return err
			})
		}
		wantError(t, "Sweep", trims.Wait(), nil)
		if after, err := s[1].Totals(t.Context()); err != nil || after.Used > budget || after.Used < budget-3*size {
			t.Errorf("%d bytes are used, %v, want %d", after.Used, err, budget)
		}
	}
	wantBody(t, s[0], 0, body)
	wantBody(t, s[0], 1, body)
	forgotten := 0
	for n := 2; n < strangers+2; n++ {
		if records, err := s[0].Lookup(t.Context(), []store.ID{idOf(n)}); err == nil && len(records) == 0 {
			forgotten++
			deny(t, s[0], Claim(n), store.DeniedNotDue, 2*time.Hour) // its decision counts
		}
	}
	if forgotten < strangers/2 {
		t.Errorf("%d of %d feeds gave way", forgotten, strangers)
	}
	_, err := s[0].Sweep(t.Context(), store.SweepQuery{Disk: 1})
	wantError(t, "Sweep", err, nil)
	wantBody(t, s[0], 0, body)
	wantUnknown(t, s[0], 1)
}

// several makes a claim, a hop and another claim of one site in one call. Each sees what those before it did.
func several(t *testing.T, h Harness) {
	s := h.open(t)
	c := []store.Claim{Claim(1), Claim(2), Claim(1), Claim(3), Claim(4)}
	for i := range c[:4] {
		c[i].Host = host("one")
	}
	c[3].Hop = true
	leases, err := s.Claim(t.Context(), c)
	wantError(t, "Claim", err, nil)
	for i, want := range []store.Refusal{"", store.DeniedBusy, store.DeniedNotDue, store.DeniedBusy, ""} {
		if leases[i].Denied != want {
			t.Errorf("claim %d is denied %q, want %q", i, leases[i].Denied, want)
		}
	}
	wantUnknown(t, s, 3) // a hop makes no record
	h.Sleep(2 * time.Minute)
	leases, err = s.Claim(t.Context(), []store.Claim{c[3], c[1]})
	wantError(t, "Claim", err, nil)
	if leases[0].Denied != "" || leases[0].Token != 0 || leases[1].Denied != store.DeniedBusy {
		t.Errorf("a hop and then a claim: %+v", leases)
	}
}

// poked has a poke wait until a feed may be polled, and until then be found. A later one adds nothing; a poll ends it. A patient
// one leaves a feed that fails its backoff.
func poked(t *testing.T, h Harness) {
	s := h.open(t)
	poke := func(p store.Poke) {
		t.Helper()
		wantError(t, "Touch", s.Touch(t.Context(), map[store.ID]store.Asked{idOf(1): {Ago: -1, Poke: &p}}), nil)
	}
	due := func() []store.DueFeed {
		t.Helper()
		due, err := s.Due(t.Context(), store.DueQuery{Poked: true})
		wantError(t, "Due", err, nil)
		return due.Feeds
	}
	o := Outcome(Grant(t, s, Claim(1)), nil)
	o.In = 24 * time.Hour
	Commit(t, s, o)
	poke(store.Poke{In: time.Minute, Floor: time.Hour})
	poke(store.Poke{In: 2 * time.Hour})
	if r := lookup(t, s, 1); !r.Poked || !near(r.In, time.Hour) || len(due()) > 0 {
		t.Errorf("a feed that is poked: %+v, and is due: %+v", r, due())
	}
	deny(t, s, Claim(1), store.DeniedNotDue, time.Hour)
	h.Sleep(time.Hour + slack)
	if got := due(); len(got) != 1 || got[0].ID != idOf(1) || !got[0].New {
		t.Errorf("what is due because of a poke: %+v", got)
	}
	l := Grant(t, s, Claim(1))
	if !l.Poked || l.Record.Poked || len(due()) > 0 {
		t.Errorf("the grant: %+v, and it is due: %+v", l, due())
	}
	o = Outcome(l, nil)
	o.In, o.State = 24*time.Hour, store.StateFailing
	Commit(t, s, o)
	poke(store.Poke{Patient: true})
	deny(t, s, Claim(1), store.DeniedNotDue, 24*time.Hour)
	h.Sleep(25 * time.Hour)
	l = Grant(t, s, Claim(1))
	poke(store.Poke{}) // while it is polled
	o = Outcome(l, Text(1, "content"))
	o.In = 24 * time.Hour
	Commit(t, s, o)
	if got := due(); len(got) != 1 || got[0].New {
		t.Errorf("a poke during a poll: %+v", got)
	}
}

// oneSecret: all calls get the same key, also the first ones of two nodes.
func oneSecret(t *testing.T, h Harness) {
	s := [2]Handle{h.open(t)}
	if s[1] = s[0]; h.Shared {
		s[1] = h.open(t)
	}
	var all [8][]byte
	var calls errgroup.Group
	for i := range all {
		calls.Go(func() (err error) {
			all[i], err = s[i%2].Secret(t.Context())
			return err
		})
	}
	wantError(t, "Secret", calls.Wait(), nil)
	for _, got := range all {
		if !bytes.Equal(got, all[0]) || len(got) < 32 || bytes.Equal(got, make([]byte, len(got))) {
			t.Errorf("Secret = %x and then %x", all[0], got)
		}
	}
}

// ended makes all calls after their context was cancelled, and after a Close. They fail, and nothing happens.
func ended(t *testing.T, h Harness) {
	s := h.open(t)
	commitBody(t, s, 1, Text(1, "content"))
	h.Sleep(3 * time.Hour)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range calls(ctx, s) {
		wantError(t, what, err, context.Canceled)
	}
	s.Close()
	for what, err := range calls(t.Context(), s) {
		if err == nil {
			t.Errorf("%s worked after Close", what)
		}
	}
	s = h.open(t)
	if r := lookup(t, s, 1); r.In > 0 {
		t.Errorf("something happened: %+v", r)
	}
	wantBody(t, s, 1, Text(1, "content"))
	wantUnknown(t, s, 2)
}

// calls makes all calls that there are.
func calls(ctx context.Context, s Handle) map[string]error {
	errs := make(map[string]error)
	_, errs["Claim"] = s.Claim(ctx, []store.Claim{Claim(1)})
	_, errs["Due"] = s.Due(ctx, store.DueQuery{Limit: 1})
	errs["Commit"] = s.Commit(ctx, store.Outcome{ID: idOf(1), Token: 1})
	errs["Commit of a body"] = s.Commit(ctx, store.Outcome{ID: idOf(1), Token: 1, Body: Text(2, "other")})
	_, errs["Lookup"] = s.Lookup(ctx, []store.ID{idOf(1)})
	_, errs["Body"] = store.ReadBody(ctx, s, idOf(1))
	_, errs["Records"] = s.Records(ctx, store.ID{}, 1, false)
	errs["Touch"] = s.Touch(ctx, map[store.ID]store.Asked{idOf(1): {}})
	errs["Forget"] = s.Forget(ctx, idOf(1))
	_, errs["Sweep"] = s.Sweep(ctx, store.SweepQuery{Idle: 1})
	errs["Restore"] = s.Restore(ctx, []store.Saved{{Record: store.Record{ID: idOf(2)}}})
	_, errs["Pauses"] = s.Pauses(ctx)
	_, errs["Secret"] = s.Secret(ctx)
	errs["Watch"] = s.Watch(ctx, func(store.Change) error { return nil })
	_, errs["Totals"] = s.Totals(ctx)
	errs["SaveCounters"] = s.SaveCounters(ctx, "node", []byte("data"))
	_, errs["Counters"] = s.Counters(ctx)
	return errs
}
