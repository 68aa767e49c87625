// Copyright 2026 The Pollard Authors
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"testing"
	"time"

	"github.com/feedpollard/pollard/cache/store"
)

// FuzzNotes starts a schedule with a note that may be damaged. Notes may delay polls,
// or be of no help, but the schedule must work.
func FuzzNotes(f *testing.F) {
	f.Add(noteStart+"example.com", encodeStart(start{5, 7}))
	f.Add(notePause+"host example.com", encodePause(pause{until: 100, step: 2, why: "429"}))
	f.Add(noteHop+string(make([]byte, 16)), encodeHop(hop{1, 2}))
	f.Add(notePause, []byte{1})
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		shelf := &shelf{feeds: make(map[store.ID]*Feed), texts: make(map[store.ID]Text)}
		s, err := New(10, shelf, map[string][]byte{key: value}, 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Pauses(10) {
			if p.For <= 0 {
				t.Errorf("pause %+v", p)
			}
		}
		c := store.Claim{ID: store.ID{1}, URL: "https://example.com/", Host: store.Host{Name: "example.com"}, Hold: time.Hour}
		lease, err := s.Claim(10, c)
		if err != nil || lease.Denied == "" && lease.Token <= 3 {
			t.Errorf("lease %+v, %v", lease, err)
		}
		if lease.Denied != "" && lease.Wait <= 0 {
			t.Errorf("denied as %q for %v", lease.Denied, lease.Wait)
		}
		s.Confirm()
		if err := s.Tidy(20); err != nil {
			t.Error(err)
		}
	})
}
