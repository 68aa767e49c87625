// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"bytes"
	"errors"
	"maps"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/feedpollard/pollard/cache/store"
)

// countersOfNodes: each step saves the counters of one node, and leaves those of the others alone.
func countersOfNodes(t *testing.T, h Harness) {
	s := h.Open()
	large := string(make([]byte, store.MaxCounters))
	for _, step := range []struct {
		node, data string
		refused    bool
		want       map[string]string
	}{
		{node: "absent", want: map[string]string{}},
		{node: "one", data: "1", want: map[string]string{"one": "1"}},
		{node: "two", data: "\x00\xff", want: map[string]string{"one": "1", "two": "\x00\xff"}},
		{node: "one", data: "1 again", want: map[string]string{"one": "1 again", "two": "\x00\xff"}},
		{node: "one", data: large + "x", refused: true, want: map[string]string{"one": "1 again", "two": "\x00\xff"}},
		{node: "two", data: large, want: map[string]string{"one": "1 again", "two": large}},
		{node: "two", want: map[string]string{"one": "1 again"}},
	} {
		data := []byte(step.data)
		if err := s.SaveCounters(t.Context(), step.node, data); (err != nil) != step.refused {
			t.Errorf("SaveCounters of %d bytes for %q: %v", len(data), step.node, err)
		}
		clear(data) // the store has a copy
		wantCounters(t, s, step.want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wantCounters(t, h.open(t), map[string]string{"one": "1 again"})
}

func wantCounters(t *testing.T, s store.Store, want map[string]string) {
	t.Helper()
	counters, err := s.Counters(t.Context())
	got := make(map[string]string)
	for node, data := range counters {
		got[node] = string(data)
		clear(data) // it is the caller's
	}
	if err != nil || !maps.Equal(got, want) {
		t.Errorf("Counters = %.200q, %v, want %.200q", got, err, want)
	}
}

// oneSecret: all calls get the same key, at once and after a restart.
func oneSecret(t *testing.T, h Harness) {
	s := h.Open()
	var all [8][]byte
	var calls errgroup.Group
	for i := range all {
		calls.Go(func() (err error) {
			all[i], err = s.Secret(t.Context())
			return err
		})
	}
	if err := errors.Join(calls.Wait(), s.Close()); err != nil {
		t.Fatal(err)
	}
	again, err := h.open(t).Secret(t.Context())
	if err != nil || len(again) < 32 || bytes.Equal(again, make([]byte, len(again))) {
		t.Errorf("Secret = %d bytes, %v", len(again), err)
	}
	for _, got := range all {
		if !bytes.Equal(got, again) {
			t.Errorf("Secret = %x and then %x", got, again)
		}
	}
}
